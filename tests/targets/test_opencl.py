"""OpenCL C on the processor: the launcher's half, the compile phase and the example."""

from pathlib import Path
from typing import Any

import pytest
import torch

from data.records import Device, Operator
from targets import opencl, opencl_launch
from targets.intel import TARGET as INTEL
from targets.machines.inventory import capabilities, devices
from targets.remote.build import build
from targets.remote.kforge_launch import HALVES, Kernels, kernels, signatures
from tests.targets.exported import assert_example_is_right
from tests.targets.rig import ADD, Rig

DEVICE = Device(name="xeon-opencl", target="intel", vendor="intel", arch="x86_64")
RUNTIMES = {"intel": opencl.intel_library, "pocl": opencl.pocl_library}
SOURCE = """
typedef float real;  // a comment with __kernel void no(int n) {}
float twice(float x) { return 2 * x; }
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void add(__global const float* restrict x, __global real* y, const long n, uint k,
         __local float* shared, ulong u) {
  const long i = get_global_id(0);
  shared[get_local_id(0)] = i < n ? x[i] : 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n) y[i] = twice(shared[get_local_id(0)]) + k + u;
}
kernel void corners(global int* out) {
  if (get_local_id(0) + get_local_id(1) + get_local_id(2) == 0)
    out[get_group_id(0) + 2 * get_group_id(1) + 6 * get_group_id(2)] =
      (int)(get_local_size(0) * 100 + get_local_size(1) * 10 + get_local_size(2));
}
"""
CANDIDATE = '''
import torch
from torch import nn
from kforge_launch import kernels

K = kernels(r"""
__kernel void add(__global const float* x, __global const float* y, __global float* o, long n) {
  const long i = get_global_id(0);
  if (i < n) o[i] = x[i] + 2.0f * y[i];
}""", language="opencl")

class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        K.add(grid=(-(-x.numel() // 64),), block=(64,), args=(x, y, o, x.numel()))
        return o
'''

needs_opencl = pytest.mark.skipif(
    opencl.library() is None, reason=f"no OpenCL for processors: {opencl.INSTALL}"
)


@pytest.fixture(params=RUNTIMES)
def kernel(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Kernels:
    """The kernels of SOURCE on each run time that is installed."""
    found = RUNTIMES[request.param]()
    if found is None:
        pytest.skip(f"{request.param} is not installed: {opencl.INSTALL}")
    monkeypatch.setenv("KFORGE_LAUNCH_CACHE", str(tmp_path))
    run_time = opencl.Opencl(found)
    monkeypatch.setattr(opencl_launch, "_opencl", lambda: run_time)
    return kernels(SOURCE, language="opencl")


def test_kernels_are_read_from_opencl() -> None:
    """Address spaces, attributes and unsigned words do not hide a parameter; helpers are none."""
    assert signatures(HALVES["opencl"].as_c(SOURCE)) == {
        "add": (
            "const float* x",
            "real* y",
            "const long n",
            "unsigned int k",
            "size_t shared",
            "unsigned long u",
        ),
        "corners": ("int* out",),
    }


def test_kernel_computes_where_the_tensors_lie(kernel: Kernels) -> None:
    """Tensors at any address, numbers and local memory arrive as declared."""
    x = torch.arange(1003.0)[3:]
    y = torch.full((1002,), 7.0)[1:1001]
    for _ in range(2):
        kernel.add(grid=(16,), block=(64,), args=(x, y, 1000, 3, 256, 1))
        torch.testing.assert_close(y, 2 * x + 4, rtol=0, atol=0)


def test_grid_counts_groups_in_three_dimensions(kernel: Kernels) -> None:
    """A grid is groups and a block items, as for the other vendors."""
    out = torch.zeros(24, dtype=torch.int32)
    kernel.corners(grid=(2, 3, 4), block=(4, 2, 3), args=(out,))
    assert out.tolist() == [423] * 24


@pytest.mark.parametrize(
    ("size", "error", "words"),
    [
        ({"grid": (1,), "block": (32,)}, RuntimeError, r"add grid=\(1, 1, 1\).*WORK_GROUP_SIZE"),
        ({"grid": (0,), "block": (64,)}, ValueError, "grid must be one to three positive ints"),
        ({"grid": (1,), "block": (64,), "shared": 9}, ValueError, "local memory as an argument"),
    ],
)
def test_refused_launch_says_what_was_asked(
    kernel: Kernels, size: dict[str, Any], error: type[Exception], words: str
) -> None:
    """A launch that cannot be is an error with its sizes, not a silent nothing."""
    x = torch.zeros(64)
    with pytest.raises(error, match=words):
        kernel.add(**size, args=(x, x.clone(), 64, 0, 256, 0))


def test_local_memory_needs_a_size(kernel: Kernels) -> None:
    """A tensor for a pointer to local memory is refused by name."""
    x = torch.zeros(64)
    with pytest.raises(TypeError, match="'shared'"):
        kernel.add(grid=(1,), block=(64,), args=(x, x.clone(), 64, 0, x, 0))


@pytest.mark.parametrize("run_time", RUNTIMES)
def test_compiler_errors_are_located(run_time: str) -> None:
    """Both run times' messages become diagnostics at the kernel's own line."""
    found = RUNTIMES[run_time]()
    if found is None:
        pytest.skip(f"{run_time} is not installed: {opencl.INSTALL}")
    source = "__kernel void f(__global float* x) {\n  x[0] = nonsense;\n}\n"
    binary, log = opencl.Opencl(found).build(source)
    assert binary is None
    (first,) = INTEL.parse_diagnostics(log)
    assert (first.file, first.line, first.severity) == ("kernel.cl", 2, "error")
    assert first.message == "use of undeclared identifier 'nonsense'"


@needs_opencl
def test_candidate_is_judged_on_the_processor(rig: Rig) -> None:
    """An OpenCL candidate is compiled and run behind the walls, right and wrong told apart."""
    for source, status in (
        (CANDIDATE, "ran"),
        (CANDIDATE.replace("2.0f", "2.1f"), "wrong"),
    ):
        operator = Operator(name="op", source=ADD)
        built = build(operator, source, DEVICE, zygote=rig.zygote, cache=rig.folder)
        assert built.ok, built.detail
        assert {m.name for m in built.metrics} == {"shared_bytes", "stack_bytes"}
        run = rig.measure(source, device=DEVICE)
        assert run.status == status, run.detail


@needs_opencl
def test_example_is_right(tmp_path: Path) -> None:
    """The one-shot example computes its operator, with the launcher that an export carries."""
    brief = INTEL.brief(DEVICE)
    assert_example_is_right(brief, opencl_launch.OPENCL, tmp_path)


def test_time_is_the_processors_own() -> None:
    """What runs on the processor in place of a GPU is right or wrong and has no time."""
    known = devices()
    here, b580 = capabilities(known["xeon-opencl"]), capabilities(known["b580"])
    assert here.time == here.execute == (opencl.library() is not None)
    assert not b580.time
    assert "no such device here" in b580.why
