"""The shipped archive: what is in it, and that it works where there is only Python and torch."""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from data.codec import decode, encode
from data.errors import MachineError
from data.records import Admission, BuildResult, Contract, MeasureJob, Operator, RunResult
from targets.machines import archive
from tests.targets.machines.lean import lean_python
from tests.targets.rig import ADD, CPU, HONEST

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lean_python(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive.build(tmp_path_factory.mktemp("archive"))


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Another machine's folder for temporary files: a socket's path must be short."""
    with tempfile.TemporaryDirectory(prefix="kf-", dir="/tmp") as folder:
        yield Path(folder)


def elsewhere(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has never seen KForge."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}


def run(
    python: Path, pyz: Path, tmp_path: Path, *words: str, text: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-I", pyz, *words],
        cwd=tmp_path,
        env=elsewhere(tmp_path),
        input=text,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_same_sources_give_the_same_bytes(pyz: Path, tmp_path: Path) -> None:
    """Two builds agree to the byte, and the name holds their identity."""
    again = archive.build(tmp_path)
    assert again.name == pyz.name == f"kforge-remote-{archive.identity()}.pyz"
    assert again.read_bytes() == pyz.read_bytes()


def test_nothing_of_the_controller_travels(pyz: Path) -> None:
    """No model client, no ledger, no transport, no flow; templates and examples do travel."""
    names = set(zipfile.ZipFile(pyz).namelist())
    assert not {n for n in names if n.startswith("flows/")}
    assert not {"agents/llm.py", "data/store.py", "targets/machines/inventory.py"} & names
    assert {"agents/offline/templates/vector.hpp", "targets/examples/cpu/guide.md"} <= names


def test_a_folder_that_takes_nothing_is_the_worlds_fault(tmp_path: Path) -> None:
    """A file in the way: one line that names the path."""
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match=r"cannot write .*file/kforge-remote-"):
        archive.build(tmp_path / "file")


def test_the_lean_python_has_torch_alone(python: Path) -> None:
    """The test bed itself: else the next tests prove nothing."""
    ask = "import importlib.util as u; print([bool(u.find_spec(n)) for n in {!r}.split()])"
    names = "torch numpy pyarrow pydantic rich typer data tasks"
    told = subprocess.run([python, "-I", "-c", ask.format(names)], capture_output=True, check=True)
    assert json.loads(told.stdout.decode().lower()) == [True] + [False] * 7


def test_version_and_probe_need_no_torch(pyz: Path, tmp_path: Path) -> None:
    """A doctor can ask a machine before torch is installed."""
    bare = Path(sys.executable).resolve()
    told = json.loads(run(bare, pyz, tmp_path, "version").stdout)
    assert told["archive"] == archive.identity()
    probe = json.loads(run(bare, pyz, tmp_path, "probe").stdout)
    assert probe["targets"]["cpu"]["compile"] is True
    assert probe["free_gib"] > 0


def test_without_torch_the_judge_says_so(pyz: Path, tmp_path: Path) -> None:
    """One line, no traceback."""
    bare = Path(sys.executable).resolve()
    done = run(bare, pyz, tmp_path, "serve", "--cache", str(tmp_path / "cache"))
    assert done.returncode == 1
    assert done.stderr.endswith("has no torch: install it there\n")
    assert "Traceback" not in done.stderr


def test_files_that_somebody_cleaned_away_come_back(pyz: Path, tmp_path: Path) -> None:
    """Who cleans temporary folders takes single files: the next start puts them back."""
    bare = Path(sys.executable).resolve()
    run(bare, pyz, tmp_path, "version")
    (lost,) = tmp_path.glob("kforge-*/remote/*/data/codec.py")
    lost.unlink()
    assert run(bare, pyz, tmp_path, "version").returncode == 0
    assert lost.exists()


def test_a_folder_of_somebody_else_is_not_used(pyz: Path, tmp_path: Path) -> None:
    """A link that another user may have planted is refused, nothing is written through it."""
    (tmp_path / "trap").mkdir()
    (tmp_path / f"kforge-{os.getuid()}").symlink_to(tmp_path / "trap")
    done = run(Path(sys.executable).resolve(), pyz, tmp_path, "version")
    assert done.returncode == 1
    assert "belongs to somebody else" in done.stderr
    assert not list((tmp_path / "trap").rglob("*.py"))


def test_the_judge_works_with_torch_alone(
    python: Path, pyz: Path, tmp_path: Path, warmed: Callable[[Path], Path]
) -> None:
    """Admission, a build with the launcher and a run behind the walls, children and all."""
    warmed(tmp_path / "cache")
    operator = Operator(name="add", source=ADD)
    job = MeasureJob(operator=operator, device=CPU, contract=Contract(), source=HONEST, pairs=0)
    asked: list[tuple[str, object]] = [
        ("admit", {"operator": operator, "contract": Contract(), "device": CPU}),
        ("build", {"operator": operator, "candidate_source": HONEST, "device": CPU}),
        ("measure", job),
    ]
    admission, build, run = answers(python, pyz, tmp_path, asked)
    assert decode(Admission, admission).admitted
    assert decode(BuildResult, build).ok
    assert decode(RunResult, run).status == "ran"


def answers(python: Path, pyz: Path, tmp_path: Path, asked: list[tuple[str, object]]) -> list[Any]:
    """What one server says to each request in turn."""
    process = subprocess.Popen(
        [python, "-I", pyz, "serve", "--cache", str(tmp_path / "cache")],
        cwd=tmp_path,
        env=elsewhere(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    told = []
    with process:
        for op, args in asked:
            process.stdin.write(json.dumps({"id": op, "op": op, "args": encode(args)}) + "\n")
            process.stdin.flush()
            told.append(json.loads(process.stdout.readline()))
    assert all(t["ok"] for t in told), told
    return [t["value"] for t in told]
