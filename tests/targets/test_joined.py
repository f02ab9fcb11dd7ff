"""The launcher as one file, used by a Python that has nothing of ours."""

import subprocess
import sys
import types
from pathlib import Path

import pytest

from targets import TARGETS
from targets.closure import closure
from targets.joined import joined
from targets.nvrtc import Nvrtc
from targets.remote.kforge_launch import Half

HALVES = [half for target in TARGETS.values() for half in target.halves]
RECORD = """
import sys
import types
sys.path.insert(0, sys.argv[1])
import kforge_launch
language = sys.argv[2]
half = kforge_launch.HALVES[language]
sources = kforge_launch.record()
kforge_launch.kernels("nothing", language=language)
assert sources == [(language, "nothing")]
assert not any(name.partition(".")[0] in ("targets", "data", "torch") for name in sys.modules)
print(half.product)
"""
COMPILE = """
import sys
import types
sys.path.insert(0, sys.argv[1])
import kforge_launch
source = 'extern "C" __global__ void f(float* y) { y[0] = 1; }'
image, log = kforge_launch.Nvrtc().cubin(source, "k.cu", ["--gpu-architecture=sm_90"])
print(image[:4] == b"\\x7fELF", log)
"""


def _run(folder: Path, script: str, *words: str) -> str:
    command = [sys.executable, "-I", "-c", script, str(folder), *words]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-800:]
    return done.stdout.strip()


@pytest.mark.parametrize("half", HALVES, ids=lambda h: h.languages[0])
def test_one_file_knows_the_language(tmp_path: Path, half: Half) -> None:
    """The file alone takes the target's kernels, without torch and without the project."""
    (tmp_path / "kforge_launch.py").write_text(joined(half))
    assert _run(tmp_path, RECORD, half.languages[0]) == half.product


@pytest.mark.skipif(Nvrtc.where() is None, reason="needs NVRTC: pip install nvidia-cuda-nvrtc")
def test_one_file_compiles_cuda(tmp_path: Path) -> None:
    """What it needs of the target's file is all there, and nothing else is."""
    text = joined(TARGETS["nvidia"].halves[0])
    (tmp_path / "kforge_launch.py").write_text(text)
    assert _run(tmp_path, COMPILE) == "True"
    assert "NvidiaTarget" not in text


def test_half_that_leans_on_the_project_is_refused(tmp_path: Path) -> None:
    """A half that uses a record would break in every export: it is told at once."""
    from targets import closure as module

    with pytest.raises(RuntimeError, match=r"must not use data\.records: it travels alone"):
        module._ours("data.records")


def test_one_name_of_two_modules_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one text the later of the two would win, silently."""
    texts = {
        "targets.left": "SIZE = 1\n\ndef left():\n    return SIZE\n",
        "targets.right": "from targets.left import left\nSIZE = 2\n\ndef right():\n"
        "    return left() + SIZE\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
        module = types.ModuleType(name)
        module.__file__ = str(tmp_path / f"{name}.py")
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(RuntimeError, match=r"right and targets\.left both define SIZE"):
        closure("targets.right", "right")
