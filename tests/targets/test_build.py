import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import MachineError
from data.records import BuildResult, Device, Operator
from targets.cpu import EXAMPLES
from targets.remote import kforge_launch
from targets.remote.build import build, record
from targets.remote.compiler import library_folder
from targets.remote.sandbox import Limits
from targets.remote.walled import walled

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

CPU = Device(name="cpu", target="cpu", vendor="cpu", arch="x86_64-avx512f")
OPERATOR = Operator(name="any", source="")
CODE = r"""
#include <cmath>
extern "C" void f(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] + 1;
}
"""

SPEAKS = """import kforge_launch, os
os.write(3, b'{"sources": [["cpp", "x", "y"]]}')
os._exit(0)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def _build(cache: Path, source: str, device: Device = CPU) -> BuildResult:
    return build(OPERATOR, source, device, zygote=None, cache=cache)


def _candidate(*codes: str) -> str:
    lines = [f"K{n} = kernels(r'''{code}''')" for n, code in enumerate(codes)]
    return "\n".join(["from kforge_launch import kernels", *lines])


def test_example_builds_and_is_found_by_its_hash(cache: Path) -> None:
    """A good candidate has its library, metrics, remarks, command and time on record."""
    result = _build(cache, (EXAMPLES / "kernel.py").read_text())
    assert result.ok, result.detail
    assert result.route == "launcher"
    assert "g++" in result.command
    assert "-march=native" in result.command
    assert {m.name for m in result.metrics} == {"loops_vectorised", "loops_missed"}
    assert result.remarks
    assert result.seconds > 0
    assert len(list(library_folder(cache, CPU).glob("*.so"))) == 1


def test_second_build_compiles_nothing(cache: Path) -> None:
    """A source that was compiled before costs no compiler run and has the same report."""
    first = _build(cache, _candidate(CODE))
    library = library_folder(cache, CPU) / f"{kforge_launch.source_hash('cpp', CODE)}.so"
    stamp = library.stat().st_mtime_ns
    second = _build(cache, _candidate(CODE))
    assert library.stat().st_mtime_ns == stamp
    assert (second.metrics, second.remarks) == (first.metrics, first.remarks)


def test_two_sources_add_their_counts(cache: Path) -> None:
    """Metrics of all sources are added; each has its library."""
    one = _build(cache, _candidate(CODE))
    two = _build(cache, _candidate(CODE, CODE.replace("+ 1", "+ 2")))
    assert two.metrics[0].value == 2 * one.metrics[0].value


def test_compiler_errors_are_located(cache: Path) -> None:
    """A source that does not compile gives the line, the message and the source line."""
    result = _build(cache, _candidate(CODE.replace("x[i]", "z[i]")))
    assert not result.ok
    first = result.diagnostics[0]
    assert (first.file, first.line, first.severity) == ("kernel.cpp", 4, "error")
    assert "'z' was not declared" in first.message
    assert first.source_line.startswith("for (long i")
    assert result.detail == f"kernel.cpp:4: {first.message}"
    assert "'z' was not declared" in result.log
    assert result.metrics == ()


def test_missing_function_fails_when_it_is_built(cache: Path) -> None:
    """An undefined symbol is the linker's message, not a crash in the run phase."""
    code = 'void helper(float*);\nextern "C" void f(float* y) { helper(y); }'
    result = _build(cache, _candidate(code))
    assert not result.ok
    assert "undefined reference" in result.detail


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("import torch\nx = (\n", 2, "SyntaxError: '(' was never closed"),
        ("import kforge_launch\n\ny = missing\n", 3, "NameError: name 'missing'"),
        ("import kforge_launch\ndef f():\n    raise ValueError('a\\nb')\nf()\n", 3, "ValueError"),
        ("import kforge_launch\nimport sys\nsys.exit(0)\n", 3, "SystemExit: 0"),
        ("import kforge_launch\nkforge_launch.kernels('', language='pascal')\n", 2, "'pascal'"),
        ("import kforge_launch, os\nos._exit(0)\n", None, "the process ended during the import"),
        ("import kforge_launch, os\nos.write(3, b'{}')\nos._exit(0)", None, "during the import"),
        (SPEAKS, None, "something else than its kernel sources"),
    ],
)
def test_failed_import_is_the_candidates_fault(
    cache: Path, source: str, line: int | None, message: str
) -> None:
    """Whatever goes wrong at import is a result with the candidate's own line, never an error."""
    result = _build(cache, source)
    assert not result.ok
    (found,) = result.diagnostics
    assert (found.file, found.line) == ("candidate.py", line)
    assert message in found.message
    assert message in result.detail
    if line is not None:
        assert found.source_line == source.splitlines()[line - 1].strip()


def test_candidate_without_launcher_is_built_when_it_runs(cache: Path) -> None:
    """Other forms have no compile phase: nothing is executed here."""
    result = _build(cache, "raise RuntimeError('executed')")
    assert result.ok
    assert result.route == "one-phase"


@pytest.mark.parametrize(
    "code",
    [
        '#include "{file}"',
        'extern "C" const char text[] = {{\n#embed "{file}"\n}};',
        'asm(".incbin \\"{file}\\"");',
        '#line 1 "{file}"\nnonsense;',
        '#include "/proc/self/environ"\nnonsense;',
    ],
)
def test_source_cannot_read_files_of_the_machine(
    cache: Path, tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No text of a private file or of the environment reaches result or library."""
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    secret = tmp_path / "private.txt"
    secret.write_text("hunter2 = password\n" * 3)
    result = _build(cache, _candidate(code.format(file=secret)))
    assert "hunter2" not in repr(result)
    assert not any(b"hunter2" in p.read_bytes() for p in library_folder(cache, CPU).glob("*.so"))


def test_candidate_cannot_write_to_the_cache(cache: Path) -> None:
    """The folder of the libraries is out of reach while a candidate is imported."""
    folder = library_folder(cache, CPU)
    before = sorted(p.name for p in folder.iterdir())
    result = _build(
        cache, f"import kforge_launch\nopen({str(folder / 'planted.so')!r}, 'w').write('x')"
    )
    assert not result.ok
    assert sorted(p.name for p in folder.iterdir()) == before


def test_candidate_cannot_see_the_environment(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets of the judge's environment are not there when a candidate is imported."""
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    result = _build(cache, "import kforge_launch, os\nraise ValueError(dict(os.environ))")
    assert "hunter2" not in result.detail
    assert "PATH" in result.detail


def _hang(_: int) -> None:
    subprocess.Popen(["sleep", "4323"])
    time.sleep(4323)


def test_hang_ends_at_the_deadline_with_its_children(tmp_path: Path) -> None:
    """A build step that never ends is killed, whatever it has started."""
    started = time.monotonic()
    limits = Limits(memory_bytes=1 << 30, seconds=1.0, tmpfs_bytes=1 << 20)
    ended = walled(_hang, tmp_path, limits)
    assert not ended.in_time
    assert time.monotonic() - started < 5
    time.sleep(0.2)
    assert not _named("4323")


def _named(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_endless_output_is_bounded(tmp_path: Path) -> None:
    """A flood on stdout fills no memory; its end is dropped."""
    limits = Limits(memory_bytes=1 << 30, seconds=20.0, tmpfs_bytes=1 << 20)
    command = ("/bin/sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' x")
    ended = walled(lambda _: os.execv(command[0], command), tmp_path, limits)
    assert ended.in_time
    assert len(ended.log) <= 4 << 20


def test_killed_judge_leaves_no_build_process(tmp_path: Path) -> None:
    """When the process that waits for a build is killed, the build dies too."""
    word = f"43{os.getpid()}"
    script = (
        "import time\nfrom pathlib import Path\n"
        "from targets.remote.walled import walled\nfrom targets.remote.sandbox import Limits\n"
        "import os\nlimits = Limits(memory_bytes=1 << 30, seconds=60.0)\n"
        f"run = lambda _: os.execv('/bin/sleep', ['sleep', '{word}'])\n"
        f"walled(run, Path({str(tmp_path)!r}), limits)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=Path.cwd()) as process:
        for _ in range(200):
            if _named(word):
                break
            time.sleep(0.05)
        assert _named(word)
        process.send_signal(signal.SIGKILL)
    for _ in range(40):
        if not _named(word):
            break
        time.sleep(0.05)
    assert not _named(word)


def test_no_compiler_is_the_worlds_fault(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a compiler is no verdict on a candidate: one clear line."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MachineError, match=r"^no C\+\+ compiler on this machine: install g\+\+"):
        _build(cache, _candidate(CODE))


def test_flags_and_compiler_are_in_the_key(cache: Path) -> None:
    """Libraries of another compiler, processor or flag lie in another folder."""
    folder = library_folder(cache, CPU)
    assert folder.parent == cache / "kernels"
    another = replace(CPU, arch="x86_64-sse2")
    assert library_folder(cache, another) != folder


def test_a_build_leaves_no_descriptor_open() -> None:
    """A process that builds many candidates does not run out of them."""
    record(SPEAKS)
    before = len(list(Path("/proc/self/fd").iterdir()))
    record(SPEAKS)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
