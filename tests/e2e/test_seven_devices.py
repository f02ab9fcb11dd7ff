"""Two operators on seven devices of four vendors and the processor, by one that has no GPU."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from data.codec import loads
from data.records import Iteration
from data.store import Ledger
from targets import sycl

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
OPERATORS = ("softmax", "linear_gelu")
EMULATED = {"h200": "cuda", "mi300x": "hip", "b580": "opencl", "m4-max": "metal"}
TIMED = {"cpu": "cpp", "xeon-opencl": "opencl", "xeon-sycl": "sycl"}
COMPILERS = {"h200": "ptxas", "mi300x": "clang", "cpu": "g++", "xeon-opencl": "opencl"}
"""By device: whose figures a kernel has; Metal's compiler and an ocloc without B580 have none."""
TOOLS = ("g++", "clang++-19")


@pytest.mark.timeout(1700)
@pytest.mark.skipif(sycl.sycl_library() is None, reason=f"no SYCL: {sycl.SYCL_INSTALL}")
@pytest.mark.skipif(
    not all(map(shutil.which, TOOLS)), reason=f"needs {' and '.join(TOOLS)}: make toolchains"
)
def test_four_vendors_and_the_processor(tmp_path: Path) -> None:
    """Verdicts from execution, real compilers' figures, times for the processor's devices alone."""
    devices = [word for name in (*EMULATED, *TIMED) for word in ("--device", name)]
    kforge = Path(sys.executable).with_name("kforge")
    command = [str(kforge), "port", *OPERATORS, *devices, "--steps", "2", "--engine", "local"]
    done = subprocess.run(
        [*command, "--runs", tmp_path / "runs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = _rows(tmp_path / "runs")
    last = {(r.operator.name, r.device.name): r for r in rows}
    assert len(last) == len(OPERATORS) * (len(EMULATED) + len(TIMED))
    for row in rows:
        _looks_right(row)
    for (_, device), row in last.items():
        assert row.right, f"{row.operator.name}@{device}: {row.verdict}: {row.reason}"
        assert bool(row.run and row.run.timings) == (device in TIMED)


def _rows(runs: Path) -> list[Iteration]:
    """Every step on record, in order."""
    asked = "SELECT record FROM iterations ORDER BY started_at"
    found = Ledger(runs).connect().execute(asked).fetchall()
    return [loads(Iteration, record) for (record,) in found]


def _looks_right(row: Iteration) -> None:
    """What each step of a pair must say of its device."""
    name = row.device.name
    emulated = name in EMULATED
    assert row.device.execution == ("emulated" if emulated else "hardware")
    assert row.candidate is not None
    assert row.candidate.language == {**EMULATED, **TIMED}[name]
    if emulated:
        assert row.run is None or (row.run.execution, row.run.timings) == ("emulated", ())
        assert row.speedup is None
    if row.build is not None and row.build.ok and name in COMPILERS:
        assert {m.source.split(":")[0].split(",")[0] for m in row.build.metrics} == {
            COMPILERS[name]
        }
