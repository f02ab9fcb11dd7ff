"""A campaign through a spool: jobs out, kill -9 there, rows in the ledger here."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from targets.remote import pack
from tests.targets.machines.lean import lean_python

KFORGE = Path(sys.executable).with_name("kforge")
DEVICES = """
[[device]]
name = "far"
target = "cpu"
arch = "any"
machine = "bench"
[[machine]]
name = "bench"
kind = "spool"
folder = "spool"
"""
ADD = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu(x) + 2.0 * y

def get_inputs():
    return [torch.randn(512, 512), torch.randn(512, 512)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The controller's folder."""
    (tmp_path / "devices.toml").write_text(DEVICES)
    (tmp_path / "add_relu.py").write_text(ADD)
    return tmp_path


@pytest.fixture
def there() -> Iterator[Path]:
    """Another machine's folder; a socket's path must be short."""
    with tempfile.TemporaryDirectory(prefix="kf-", dir="/tmp") as folder:
        yield Path(folder)


def kforge(here: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [KFORGE, *words], cwd=here, capture_output=True, text=True, timeout=120, check=False
    )


def port(here: Path) -> subprocess.CompletedProcess[str]:
    words = ("port", "add_relu.py", "--device", "far", "--engine", "local", "--steps", "1")
    return kforge(here, *words, "--json")


def rows(here: Path) -> list[dict[str, Any]]:
    sql = "SELECT step, verdict, device, execution, isolation, run_id FROM iterations ORDER BY step"
    return [json.loads(line) for line in kforge(here, "query", sql, "--json").stdout.splitlines()]


def work(python: Path, there: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, "-I", "kforge-remote.pyz", "work", ".", "--minutes", "9"],
        cwd=there / "kforge-spool",
        env={"PATH": os.environ["PATH"], "HOME": str(there), "TMPDIR": str(there)},
        stderr=subprocess.PIPE,
        text=True,
    )


def unfold(tar: Path, there: Path) -> None:
    subprocess.run(["tar", "xf", tar], cwd=there, check=True)


def test_results_that_nobody_asked_for_are_refused(here: Path) -> None:
    """One line that names the folders which were looked at; exit code 2; nothing is imported."""
    (here / "spool" / "jobs").mkdir(parents=True)
    pack.write(here / "results.tar", {"jobs/pair-x-y-0000.json": here / "devices.toml"})
    done = kforge(here, "spool", "unpack", "results.tar")
    assert done.returncode == 2
    assert "answers no job of ours" in done.stderr
    assert done.stderr.count("\n") == 1
    assert kforge(here, "spool", "pack", "spool", "out.tar").returncode == 2


@pytest.mark.long
@pytest.mark.timeout(900)  # others may hold the device of this host
def test_a_campaign_goes_there_and_comes_back(here: Path, there: Path) -> None:
    """Packed, carried, killed half-way, gone on with, carried back: each step is a row once."""
    waits = port(here)
    assert waits.returncode == 1
    assert "1 of 1 pairs wait: nobody works on the spool" in waits.stderr
    status = json.loads(kforge(here, "spool", "status", "spool", "--json").stdout)
    assert (status["state"], status["rows"]) == ("waits", 0)
    kforge(here, "spool", "pack", "spool", "out.tar")
    unfold(here / "out.tar", there)
    python = lean_python(there)
    first = work(python, there)
    until = time.monotonic() + 300
    while not list(there.glob("kforge-spool/results/*/000-*")) and time.monotonic() < until:
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    again = work(python, there)
    _, told = again.communicate(timeout=600)
    assert again.returncode == 0, told
    assert "1 steps on record" in told
    assert "[1/1] jobs are done" in told
    tar = there / "kforge-spool" / "results.tar"
    for _ in range(2):  # a second time changes nothing
        back = kforge(here, "spool", "unpack", str(tar))
        assert back.returncode == 0, back.stderr
    assert ": 0 new rows" in back.stdout
    found = rows(here)
    assert [r["step"] for r in found] == list(range(len(found)))
    assert len(found) >= 2
    assert {(r["device"], r["execution"]) for r in found} == {("far", "hardware")}
    assert found[0]["isolation"]
    done = port(here)
    assert done.returncode == 0
    assert json.loads(done.stdout)["new_steps"] == 0
