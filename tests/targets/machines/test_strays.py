"""Temporary folders of processes that were killed."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from targets.remote import strays

HOLD = """
import sys, time
from targets.remote import strays
with strays.folder() as made:
    (made / "candidate.py").write_text("x")
    print(made, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is at work in such a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdout=subprocess.PIPE,
        text=True,
        env={"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    yield process
    process.kill()
    process.communicate()


def test_what_a_killed_job_left_is_removed_and_nothing_else(
    holder: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder in use stays, one of a killed process goes, a link leads nowhere."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert holder.stdout is not None
    made = Path(holder.stdout.readline().strip())
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / f"{strays.PREFIX}link").symlink_to(precious)
    strays.sweep(entering_s=0.0)
    assert made.is_dir()
    holder.kill()
    holder.wait()
    strays.sweep()
    assert made.is_dir(), "it is too young"
    assert strays.sweep(entering_s=0.0) >= 1
    assert not made.exists()
    assert precious.is_dir()
