"""SYCL on the processor: the compiler as a library, the launcher's half, the judge, the example."""

from pathlib import Path
from typing import Any

import pytest
import torch

from data.records import Operator
from targets import sycl, sycl_launch
from targets.intel import TARGET as INTEL
from targets.machines.inventory import capabilities, devices
from targets.remote.build import build
from targets.remote.kforge_launch import HALVES, Kernels, kernels, signatures
from tests.targets.exported import assert_example_is_right
from tests.targets.rig import ADD, Rig

DEVICE = devices()["xeon-sycl"]
HEAD = """
#include <sycl/sycl.hpp>
namespace syclex = sycl::ext::oneapi::experimental;
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::nd_range_kernel<1>))
"""
SOURCE = """
#include <sycl/sycl.hpp>
namespace syclex = sycl::ext::oneapi::experimental;
syclex::work_group_static<float[64]> shared;
static float twice(float x) { return 2 * x; }  // extern "C" void no(int n) {}
template <class T> T sum(T a, T b) { return a + b; }
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::work_group_size<64>))
void add(const float* __restrict x, float* y, const long n, unsigned k, bool unused) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  const long i = item.get_global_id(0);
  shared[item.get_local_id(0)] = i < n ? x[i] : 0;
  sycl::group_barrier(item.get_group());
  if (i < n) y[i] = sum(twice(shared[63 - (63 - item.get_local_id(0))]), (float)k);
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::nd_range_kernel<3>))
void corners(int* out, sycl::vec<float, 4>* nothing, sycl::half* none) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<3>();
  if (item.get_local_linear_id() == 0)
    out[item.get_group(2) + 2 * item.get_group(1) + 6 * item.get_group(0)] =
      (int)(item.get_local_range(2) * 100 + item.get_local_range(1) * 10 + item.get_local_range(0));
}
"""
CANDIDATE = '''
import torch
from torch import nn
from kforge_launch import kernels

K = kernels(r"""
#include <sycl/sycl.hpp>
namespace syclex = sycl::ext::oneapi::experimental;
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::nd_range_kernel<1>))
void add(const float* x, const float* y, float* o, long n) {
  const long i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < n) o[i] = x[i] + 2.0f * y[i];
}""", language="sycl")

class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        K.add(grid=(-(-x.numel() // 64),), block=(64,), args=(x, y, o, x.numel()))
        return o
'''
needs_sycl = pytest.mark.skipif(sycl.sycl_library() is None, reason=f"no SYCL: {sycl.SYCL_INSTALL}")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """The kernels of SOURCE."""
    if sycl.sycl_library() is None:
        pytest.skip(f"no SYCL: {sycl.SYCL_INSTALL}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KFORGE_LAUNCH_CACHE", str(tmp_path_factory.mktemp("launch")))
        return kernels(SOURCE, language="sycl")


def test_kernels_are_read_from_sycl() -> None:
    """Properties and vector types do not hide a parameter; helpers are no kernels."""
    assert signatures(HALVES["sycl"].as_c(SOURCE)) == {
        "add": ("const float* x", "float* y", "const long n", "unsigned k", "bool unused"),
        "corners": ("int* out", "float4* nothing", "half* none"),
    }


def test_kernel_computes_where_the_tensors_lie(kernel: Kernels) -> None:
    """Tensors at any address, numbers, an unused parameter and local memory are as declared."""
    x = torch.arange(1003.0)[3:]
    y = torch.full((1002,), 7.0)[1:1001]
    for _ in range(2):
        kernel.add(grid=(16,), block=(64,), args=(x, y, 1000, 3, True))
        torch.testing.assert_close(y, 2 * x + 3, rtol=0, atol=0)


def test_grid_counts_groups_in_three_dimensions(kernel: Kernels) -> None:
    """A grid is groups and a block items, x first, as for the other vendors."""
    out = torch.zeros(24, dtype=torch.int32)
    half = torch.zeros(1, dtype=torch.float16)
    kernel.corners(grid=(2, 3, 4), block=(4, 2, 3), args=(out, None, half))
    assert out.tolist() == [423] * 24


@pytest.mark.parametrize(
    ("size", "error", "words"),
    [
        ({"grid": (1,), "block": (32,)}, RuntimeError, r"add grid=\(1, 1, 1\).*WORK_GROUP_SIZE"),
        ({"grid": (0,), "block": (64,)}, ValueError, "grid must be one to three positive ints"),
        ({"grid": (1,), "block": (64,), "shared": 9}, ValueError, "work_group_static"),
    ],
)
def test_refused_launch_says_what_was_asked(
    kernel: Kernels, size: dict[str, Any], error: type[Exception], words: str
) -> None:
    """A launch that cannot be is an error with its sizes, not a silent nothing."""
    x = torch.zeros(64)
    with pytest.raises(error, match=words):
        kernel.add(**size, args=(x, x.clone(), 64, 0, False))


@needs_sycl
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x[0] = nonsense;", "use of undeclared identifier 'nonsense'"),
        ("int y[n];", "use of undeclared identifier 'n'"),
        ("x[0] = 1", "expected ';' after expression"),
    ],
)
def test_compiler_errors_are_located(line: str, said: str) -> None:
    """The compiler's messages become diagnostics at the kernel's own line."""
    source = f"{HEAD}void f(float* x) {{\n  {line}\n}}\n"
    binary, log = sycl.sycl_build(source, "kernel.cpp")
    assert binary is None
    first = INTEL.parse_diagnostics(log)[0]
    at = source.splitlines().index(f"  {line}") + 1
    assert (first.file, first.line, first.severity) == ("kernel.cpp", at, "error")
    assert said in first.message


@needs_sycl
def test_infinities_and_nan_are_kept() -> None:
    """No fast-math: what cannot be is not assumed away."""
    body = "x[0] = x[1] - x[1] == 0.0f; x[2] = sycl::isnan(x[3]) ? 5.0f : 6.0f;"
    source = f"{HEAD}void f(float* x) {{ {body} }}\n"
    x = torch.tensor([7.0, float("inf"), 7.0, float("nan")])
    kernels(source, language="sycl").f(grid=(1,), block=(1,), args=(x,))
    assert x[[0, 2]].tolist() == [0.0, 5.0]


@needs_sycl
def test_candidate_is_judged_on_the_processor(rig: Rig) -> None:
    """A SYCL candidate is compiled and run behind the walls, right and wrong told apart."""
    operator = Operator(name="op", source=ADD)
    for source, status in ((CANDIDATE, "ran"), (CANDIDATE.replace("2.0f", "2.1f"), "wrong")):
        built = build(operator, source, DEVICE, zygote=rig.zygote, cache=rig.folder)
        assert built.ok, built.detail
        assert {m.name for m in built.metrics} == {"shared_bytes", "stack_bytes"}
        run = rig.measure(source, device=DEVICE)
        assert run.status == status, run.detail
        assert run.execution == "hardware"


@needs_sycl
def test_source_that_reads_files_is_refused(rig: Rig) -> None:
    """The compiler runs behind the walls: what a source includes cannot be the host's."""
    source = CANDIDATE.replace(
        "#include <sycl/sycl.hpp>", '#include "/etc/hostname"\n#include <sycl/sycl.hpp>'
    )
    built = build(Operator(name="op", source=ADD), source, DEVICE, zygote=None, cache=rig.folder)
    assert not built.ok
    assert "file not found" in built.detail


@needs_sycl
def test_candidate_whose_kernel_does_not_matter_is_no_work(rig: Rig) -> None:
    """A fallback beside a kernel is found: the answer is right without the kernel."""
    fallback = CANDIDATE.replace("return o\n", "return x + 2.0 * y\n")
    operator = Operator(name="op", source=ADD)
    assert build(operator, fallback, DEVICE, zygote=rig.zygote, cache=rig.folder).ok
    assert rig.measure(fallback, device=DEVICE).authored is False
    assert build(operator, CANDIDATE, DEVICE, zygote=rig.zygote, cache=rig.folder).ok
    assert rig.measure(CANDIDATE, device=DEVICE).authored is True


@needs_sycl
def test_example_is_right(tmp_path: Path) -> None:
    """The one-shot example computes its operator, with the launcher that an export carries."""
    brief = INTEL.brief(DEVICE)
    assert brief.language == "sycl"
    assert_example_is_right(brief, sycl_launch.SYCL, tmp_path)


def test_time_is_the_processors_own() -> None:
    """What runs on the processor in place of a GPU is right or wrong and has no time."""
    here = capabilities(devices()["xeon-sycl"])
    assert here.time == here.execute == here.compile == (sycl.sycl_library() is not None)
    assert here.tool == ("sycl" if here.compile else "")
    assert here.compile or sycl.SYCL_INSTALL in here.why
