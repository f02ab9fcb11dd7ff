"""What the look at threads sees, whatever their order was, and what it must not see."""

import ctypes
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from data.records import Operator, RunResult, RunStatus
from targets.remote.build import build as build_candidate
from targets.remote.races import build
from targets.remote.races.watched import watched
from targets.remote.threads import starts
from tests.targets.races import HEADER, HONEST, RACING, source
from tests.targets.rig import ADD, CPU, Rig

N = 512
VALUES = [(7 * i % N + 1) / (N + 1) for i in range(N)]
pytestmark = pytest.mark.skipif(build.found() is None, reason="needs g++ on Linux")


@dataclass
class Kernels:
    """A library whose threads are looked at."""

    folder: Path

    def seen(self, name: str, turn: int = 0) -> dict[str, Any]:
        """What was seen of a call."""
        x, y = ((ctypes.c_float * N)(*VALUES) for _ in "xy")
        function = ctypes.CDLL(str(self.folder / "kernel.so"))[name]
        [told] = watched(lambda: function(x, y, ctypes.c_long(N)), self.folder, turn)
        return {**told, "y": list(y)}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build.maker(tmp_path_factory.mktemp("cache")).team


def built(team: bytes, text: str, folder: Path, language: str = "cpp") -> str | None:
    """As behind the walls: in a process whose folder it is."""
    (folder / "kernel.cpp").write_text(text)
    before = Path.cwd()
    os.chdir(folder)
    try:
        return build.build(team, language, Path("kernel.cpp"), Path("kernel.so"))
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def racing(team: bytes, tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    folder = tmp_path_factory.mktemp("racing")
    assert built(team, source(RACING), folder) is None
    return Kernels(folder)


@pytest.fixture(scope="module")
def honest(team: bytes, tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    folder = tmp_path_factory.mktemp("honest")
    assert built(team, source(HONEST), folder) is None
    return Kernels(folder)


@pytest.mark.parametrize("name", RACING)
def test_race_is_seen_in_every_call(racing: Kernels, name: str) -> None:
    """Whoever comes first: no chance is in it."""
    seen = [racing.seen(name, turn) for turn in range(4)]
    assert all(s["races"] for s in seen), seen
    assert not any(s["why"] for s in seen)


@pytest.mark.parametrize("name", HONEST)
def test_ordered_threads_are_no_race(honest: Kernels, name: str) -> None:
    """Nothing honest is refused, and the kernel still computes something."""
    seen = [honest.seen(name, turn) for turn in range(4)]
    assert not any(s["races"] or s["why"] for s in seen), seen
    assert any(seen[0]["y"])


def test_answers_are_those_of_real_threads(honest: Kernels) -> None:
    """Our own run time for OpenMP divides loops as it should: nothing is left out or done twice."""
    assert honest.seen("unsigned_downwards")["y"] == pytest.approx(VALUES)
    assert honest.seen("task_loop")["y"] == honest.seen("collapse")["y"]
    assert honest.seen("the_last_one_adds_up")["y"][0] == pytest.approx(N / 2, rel=1e-4)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "static std::mutex m; static std::condition_variable_any c;\n  m.lock(); c.wait(m);",
            "cond",
        ),
        ("pthread_barrier_wait((pthread_barrier_t*)y);", "pthread_barrier_wait"),
        ("void* p = omp_alloc(8, omp_default_mem_alloc); y[0] = !p;", "omp_alloc"),
    ],
)
def test_waiting_that_is_not_understood_is_said(
    team: bytes, tmp_path: Path, body: str, words: str
) -> None:
    """Where threads wait in a way of their own nothing is looked at, and why is said."""
    text = f"#include <condition_variable>\n#include <pthread.h>\n{HEADER}"
    complaint = built(team, text + source({"k": body}).removeprefix(HEADER), tmp_path)
    assert complaint is not None
    assert complaint.startswith(build.LACKING)
    assert words in complaint


def test_kernel_in_c(team: bytes, tmp_path: Path) -> None:
    """The other language of the processor."""
    text = "void k(const float* x, float* y, long n) {\n#pragma omp parallel for\n"
    assert (
        built(team, f"{text}for (long i = 0; i < n; ++i) y[0] += x[i];\n}}", tmp_path, "c") is None
    )
    assert Kernels(tmp_path).seen("k")["races"]


def test_too_much_is_left_and_said(team: bytes, tmp_path: Path) -> None:
    """A large kernel costs no more than a small one; threads that wait for ever end the look."""
    work = """
  #pragma omp parallel for
  for (long i = 0; i < n; ++i) for (long j = 0; j < 20000000; ++j) y[i] += x[(i + j) % n];"""
    stuck = """
  omp_lock_t l;
  #pragma omp parallel num_threads(2)
  { if (omp_get_thread_num()) omp_set_lock(&l);
    #pragma omp barrier
    omp_set_lock(&l); }"""
    assert built(team, source({"work": work, "stuck": stuck}), tmp_path) is None
    script = """
import sys, time
from pathlib import Path
from tests.targets.test_races import Kernels
print(Kernels(Path(sys.argv[1])).seen(sys.argv[2])["why"], flush=True)
__import__("os")._exit(0)
"""
    began = time.monotonic()
    for name, words in (("work", "more accesses than"), ("stuck", "wait for each other")):
        command = [sys.executable, "-c", script, str(tmp_path), name]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert words in done.stdout
    assert time.monotonic() - began < 40


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("#pragma omp parallel for\nfor (;;);", True),
        ('#define EACH _Pragma("omp parallel for")', True),
        ("#pragma omp \\\n  parallel", True),
        ("#pragma omp simd\nfor (;;);", False),
        ("int parallel = 1; // without", False),
        ("std::jthread t(f);", True),
    ],
)
def test_only_kernels_that_start_threads_cost_a_look(text: str, *, does: bool) -> None:
    """Another library and another child are for threads alone."""
    assert starts(text) is does


KERNEL = '''
import torch
from torch import nn
from kforge_launch import kernels

K = kernels(r"""#include <thread>
extern "C" void add(const float* x, const float* y, float* o, long n) {
  static float kept[4];
  @PRAGMA@
  for (long i = 0; i < n; ++i) {
    @FIRST@
    o[i] = x[i] + 2.0f * y[i];
  }
}""")
class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        K.add(args=(x, y, o, x.numel()))
        return o
'''


def judged(rig: Rig, pragma: str, first: str) -> RunResult:
    """The judge's evidence of a kernel that is right however its threads meet."""
    text = KERNEL.replace("@PRAGMA@", pragma).replace("@FIRST@", first)
    operator = Operator(name="op", source=ADD)
    assert build_candidate(operator, text, CPU, zygote=rig.zygote, cache=rig.folder).ok
    return rig.measure(text)


def test_race_that_does_no_harm_yet_is_wrong_with_its_lines(rig: Rig) -> None:
    """Every answer was right; the generator reads where the next one may not be."""
    run = judged(rig, "#pragma omp parallel for", "kept[i % 4] += x[i];")
    assert run.status is RunStatus.WRONG
    assert "data race: line 6 (kept[i % 4] += x[i];) writes what line 6" in run.detail


def test_honest_threads_are_told_of(rig: Rig) -> None:
    """That somebody looked stands with the result."""
    run = judged(rig, "#pragma omp parallel for", "")
    assert run.status is RunStatus.RAN, run.detail
    assert run.environment["races"].startswith("no race of ")
    assert not run.review


def test_threads_that_are_not_looked_at_are_told_of(rig: Rig) -> None:
    """Never silently."""
    run = judged(rig, "std::thread([] {}).join();", "")
    assert run.status is RunStatus.RAN, run.detail
    assert run.review == ("its threads were not looked at: they are started by std::thread",)


def test_kernel_without_threads_costs_nothing(rig: Rig) -> None:
    """No library, no child, no word."""
    run = judged(rig, "", "kept[i % 4] += x[i];")
    assert run.status is RunStatus.RAN, run.detail
    assert "races" not in run.environment
