"""A kernel and its launcher in one file."""

import subprocess
import sys
from pathlib import Path

import pytest

from data.errors import ExportError
from data.records import Candidate
from tasks.export.joining import one_file
from tests.data.samples import CPU
from tests.tasks.export.ledgers import ARGMAX_KERNEL


def joined(source: str, language: str = "cpp") -> str:
    candidate = Candidate(source=source, language=language, agent_kind="given", agent_name="x")
    return one_file(candidate, CPU)


def test_the_file_is_whole_and_imports_no_launcher() -> None:
    """It compiles, `from __future__` comes first, and the launcher's name is bound."""
    text = joined(ARGMAX_KERNEL)
    compile(text, "kernel.py", "exec")
    assert text.startswith("from __future__ import annotations\n")
    assert "build = kernels\n" in text
    assert "import kforge_launch" not in text
    assert "from kforge_launch" not in text


@pytest.mark.parametrize(
    "source",
    [
        "import kforge_launch, os\nsame = kforge_launch.signatures is signatures and os",
        "import kforge_launch as kl\nsame = kl.signatures is signatures",
        "def f():\n from kforge_launch import kernels\n return kernels\nsame = f() is kernels",
        "if 1: from kforge_launch import (\n kernels,\n source_hash as h)\nsame = h is source_hash",
        "é = 1; from kforge_launch import kernels; same = kernels",
    ],
)
def test_every_form_of_the_import_is_bound(source: str, tmp_path: Path) -> None:
    """Aliases, the module itself, inside a function, over several lines, behind other text."""
    (tmp_path / "kernel.py").write_text(joined(source))
    script = "import sys; sys.path.insert(0, sys.argv[1]); import kernel; assert kernel.same"
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_name_that_both_define_is_refused() -> None:
    """In one file the later of the two would win, silently."""
    with pytest.raises(ExportError, match="it defines signatures, as the launcher"):
        joined("from kforge_launch import kernels\ndef signatures(): ...\n")


def test_a_kernel_without_the_launcher_stays_as_it_is() -> None:
    """Triton's kernels bring what they need."""
    source = "import triton\n"
    assert joined(source, "triton") == source
