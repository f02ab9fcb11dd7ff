"""The judge on devices that are not here: right or wrong, faults by line, never a time."""

import shutil
from dataclasses import replace

import pytest

from data.errors import MachineError
from data.records import BuildResult, Contract, Device, MeasureJob, Operator, RunResult, RunStatus
from data.verdict import Judgement, Verdict, judge
from targets.nvidia import TARGET as NVIDIA
from targets.remote import emulator
from targets.remote.build import build
from targets.remote.compiler import installed
from targets.remote.draws import small_plan
from targets.remote.measure import measure
from targets.remote.operator import LoadedOperator
from tests.data.samples import plain, timing
from tests.targets.rig import ADD, Rig

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

H200 = Device(name="h200", target="nvidia", vendor="nvidia", arch="sm_90a", execution="emulated")
OPERATOR = Operator(name="add", source=ADD)
KERNEL = """extern "C" __global__ void add(const float* x, const float* y, float* o, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) o[i] = x[i] + 2.0f * y[i];
}"""
MODEL = """
import torch
from torch import nn
from kforge_launch import kernels
K = kernels(r'''@KERNEL@''', language="cuda")
class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        K.add(grid=(-(-x.numel() // 100),), block=(100,), args=(x, y, o, x.numel()))
        return o
"""


def judged(rig: Rig, kernel: str) -> tuple[Judgement, BuildResult, RunResult | None]:
    """What the loop does with a candidate."""
    source = MODEL.replace("@KERNEL@", kernel)
    built = build(OPERATOR, source, H200, zygote=rig.zygote, cache=rig.folder)
    run = rig.measure(source, device=H200, deadline_s=300.0) if built.runs else None
    return judge(Contract(), built, run), built, run


def test_honest_kernel_is_right_and_has_no_time(rig: Rig) -> None:
    """A device that is not here gives a verdict that says so, and nothing like a time."""
    verdict, built, run = judged(rig, KERNEL)
    assert run is not None
    assert (run.status, run.execution, run.timings) == (RunStatus.RAN, "emulated", ()), run.detail
    assert run.authored
    assert verdict.verdict is Verdict.CORRECT
    assert "emulated" in verdict.reason
    assert (verdict.speedup, verdict.baseline, verdict.needs_review) == (None, None, False)
    assert bool(built.metrics) == bool(installed(NVIDIA))


@pytest.mark.parametrize(
    ("old", "new", "verdict", "reason"),
    [
        ("2.0f", "2.1f", Verdict.WRONG, "every element"),
        ("i < n", "i <= n", Verdict.CRASHED, "line 3: out of bounds"),
        pytest.param(
            "o[i] =",
            "o[i / 2] =",
            Verdict.CRASHED,
            "line 3: race in device memory",
            marks=pytest.mark.e2e,
        ),
        pytest.param(
            "  if (i",
            "  if (threadIdx.x < 9) __syncthreads();\n  if (i",
            Verdict.CRASHED,
            "line 3: divergent barrier",
            marks=pytest.mark.e2e,
        ),
        ("2.0f", "two", Verdict.BUILD_FAILED, "two"),
    ],
)
def test_fault_is_in_the_reason(
    rig: Rig, old: str, new: str, verdict: Verdict, reason: str
) -> None:
    """What the generator mends from names the fault and the line of the kernel."""
    found, built, _ = judged(rig, KERNEL.replace(old, new))
    assert found.verdict is verdict, (found, built.log)
    assert reason in found.reason


def test_what_the_emulator_lacks_is_no_fault(rig: Rig) -> None:
    """A kernel that only the vendor's compiler takes is neither right nor wrong."""
    kernel = KERNEL.replace("  if (i", '  asm volatile("");\n  if (i')
    found, built, run = judged(rig, kernel)
    assert (built.ok, built.runs, run) == (True, False, None)
    assert found.verdict is Verdict.UNVERIFIED
    assert "kernel.cu:3: the emulator has no inline assembly" in found.reason


def test_candidate_without_the_launcher_is_unverified(rig: Rig) -> None:
    """What builds when it is imported needs the device."""
    source = "import torch\nclass ModelNew(torch.nn.Module): pass\n"
    built = build(OPERATOR, source, H200, zygote=rig.zygote, cache=rig.folder)
    assert judge(Contract(), built, None).verdict is Verdict.UNVERIFIED
    assert "launcher" in built.detail


def test_time_of_an_emulated_device_is_refused_everywhere(rig: Rig) -> None:
    """Neither the judge nor a record takes one."""
    job = MeasureJob(
        operator=OPERATOR,
        device=H200,
        contract=Contract(),
        source=MODEL.replace("@KERNEL@", KERNEL),
        pairs=1,
    )
    build(OPERATOR, job.source, H200, zygote=rig.zygote, cache=rig.folder)
    with pytest.raises(MachineError, match="emulated: it has no time"):
        measure(job, zygote=rig.zygote, cache=rig.folder)
    with pytest.raises(ValueError, match="emulated execution has no time"):
        RunResult(status=RunStatus.RAN, execution="emulated", timings=(timing(),))
    with pytest.raises(ValueError, match="a time on h200"):
        replace(plain(), device=H200, speedup=2.0, baseline="eager")


def test_emulated_shapes_are_small() -> None:
    """An operator without a small shape is cut until the emulator can do it."""
    large = ADD.replace("64, 96", "4096, 4096")
    loaded = LoadedOperator(Operator(name="add", source=large))
    for draw in small_plan(loaded, Contract(), seed=1):
        assert sum(t.nbytes for t in draw.inputs) <= 1 << 20


def test_lanes_and_peaks_are_the_devices() -> None:
    """Sub-groups and the roofline are those of the data sheet, not of the processor at work."""
    assert emulator.lanes(H200) == 32
    assert emulator.card(H200).peak_gb_s == 4800
    wide = replace(H200, name="any", target="amd", arch="gfx942")
    assert emulator.lanes(wide) == 64
