"""Metal kernels without a Mac: right answers, and each fault named with its line."""

from pathlib import Path
from typing import Any

import pytest
import torch

from targets.remote.emulation.half import METAL
from targets.remote.kforge_launch import HALVES, Kernels, kernels
from tests.targets.metal_kernels import CASES, SOURCE, Case


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """All kernels, compiled once."""
    folder = tmp_path_factory.mktemp("metal")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KFORGE_LAUNCH_CACHE", str(folder))
        patch.setitem(HALVES, "metal", METAL)
        return kernels(SOURCE, language="metal")


@pytest.fixture(autouse=True)
def _emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KFORGE_LAUNCH_CACHE", str(tmp_path))
    monkeypatch.setitem(HALVES, "metal", METAL)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.kernel)
def test_kernel_gives_the_known_answer(case: Case, made: Kernels) -> None:
    """Checked in three orders of threads, then plain: each launch agrees with torch."""
    for _ in range(4):
        args = case.args()
        wanted = case.wanted(args)
        getattr(made, case.kernel)(
            grid=case.grid, block=case.block, args=tuple(args), shared=case.shared
        )
        torch.testing.assert_close(
            args[case.result].float().flatten(), wanted.float().flatten(), rtol=2e-5, atol=2e-4
        )


FAULTS = (Path(__file__).parent / "metal" / "faults.metal").read_text()


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """All faulty kernels, compiled once."""
    folder = tmp_path_factory.mktemp("faulty")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KFORGE_LAUNCH_CACHE", str(folder))
        patch.setitem(HALVES, "metal", METAL)
        return kernels(FAULTS, language="metal")


def floats() -> torch.Tensor:
    return torch.zeros(64)


@pytest.mark.parametrize(
    ("name", "further", "expected"),
    [
        ("past_the_end", (63 + 1,), "line 4: out of bounds: .* writes 4 bytes 0 bytes behind"),
        ("before", (floats(),), "line 8: out of bounds: .* before argument 1"),
        ("vector_past", (), "line 11: out of bounds"),
        ("shared_past", (), "line 15: out of bounds: index 60 of an array"),
        ("race", (), "line 2[02]: race in shared memory"),
        ("wrong_fence", (), "line 28: race in shared memory"),
        ("lockstep", (), "line 34: race in shared memory"),
        ("same_place", (), "line 37: race in device memory"),
        ("between_groups", (), "line 40: race in device memory"),
        ("mixed_atomic", (), "line 4[46]: race in device memory"),
        ("divergent", (), "line 50: divergent barrier: 48 of 64"),
        (
            "on_data",
            (),
            "line 83: divergent barrier: 32 of 64.*; before it line 81: race in shared",
        ),
        ("two_barriers", (), "line 5[68]: divergent barrier"),
        ("zero", (0,), "line 62: division by zero"),
        ("misaligned", (), "line 65: misaligned address"),
        ("local", (), "line 69: out of bounds: index 4 of an array"),
        ("crowded", (), "it takes at most 32"),
        ("much", (), "no device has more than 32768"),
    ],
)
def test_fault_is_named_with_its_line(
    name: str, further: tuple[Any, ...], expected: str, faulty: Kernels
) -> None:
    """A planted fault is reported as what it is, at the line where it stands."""
    ints = name in {"zero", "mixed_atomic"}
    y = floats().int() if ints else floats()
    grid = 2 if name in {"past_the_end", "between_groups"} else 1
    with pytest.raises(RuntimeError, match=f"^{name}: .*{expected}"):
        getattr(faulty, name)(grid=(grid,), block=(64,), args=(y, *further))


RELU = """#include <metal_stdlib>
using namespace metal;
kernel void relu(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
  y[i] = max(x[i], 0.0f);
}
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("simdgroup_float8x8 m;", "matrices of a SIMD-group"),
        ("texture2d<float> t;", "textures"),
        ("quad_sum(1);", "quad-groups"),
        ("float4x4 m;", "matrix types"),
        ("float4 v = 0; v.xy = float2(1);", "writes to several elements"),
    ],
)
def test_what_the_emulator_lacks_is_named_not_guessed(code: str, expected: str) -> None:
    """A source that needs more is refused with the feature and its line."""
    source = RELU.replace("  y[i]", f"  {code}\n  y[i]")
    with pytest.raises(
        RuntimeError, match=f"UNSUPPORTED: kernel.metal:5: the emulator has no {expected}"
    ):
        kernels(source, language="metal")


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("texture2d<float> t [[texture(0)]]", "textures"),
        ("device float* z [[buffer(3)]]", "gaps in buffers"),
        ("uint q [[thread_index_in_quadgroup]]", "quad-groups"),
        ("uint q [[render_target_array_index]]", "render_target_array_index"),
    ],
)
def test_unknown_parameter_is_named(parameter: str, expected: str) -> None:
    """What a kernel asks the device for and the emulator cannot give is no silent zero."""
    source = RELU.replace("uint i [[", f"{parameter}, uint i [[")
    with pytest.raises(RuntimeError, match=f"UNSUPPORTED: kernel.metal:[34]: .*{expected}"):
        kernels(source, language="metal")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("max(x[i], 0.0f)", "maxx(x[i], 0.0f)", r"kernel\.metal:5:\d+: error: .*maxx"),
        ("max(x[i], 0.0f)", "max(x[i], 0)", r"kernel\.metal:5:\d+: error: .*ambiguous"),
        ("max(x[i], 0.0f)", "expf(x[i])", r"kernel\.metal:5:\d+: error: .*Metal has no such"),
        ("max(x[i], 0.0f)", "(double)x[i]", r"kernel\.metal:5:11: error: 'double' is not supp"),
        ("  y[i]", "  float* p = y;\n  p[i]", r"kernel\.metal:5:3: error: pointer type must have"),
        ("  y[i]", "  __syncthreads();\n  y[i]", r"kernel\.metal:5:3: error: this is a word of C"),
        ("  y[i]", "  y[i] = = 1;\n  y[i]", r"kernel\.metal:5:10: error"),
    ],
)  # fmt: skip
def test_what_metal_refuses_has_the_line_of_the_kernel(old: str, new: str, expected: str) -> None:
    """The message speaks of the candidate's file, and C++ that Metal lacks does not pass."""
    with pytest.raises(RuntimeError, match=expected):
        kernels(RELU.replace(old, new), language="metal")


def test_arguments_are_refused_by_name() -> None:
    """A tensor of another type, or too few arguments, never reach a kernel."""
    made = kernels(RELU, language="metal")
    with pytest.raises(TypeError, match=r"float\* x.*float64"):
        made.relu(grid=1, block=64, args=(floats().double(), floats()))
    with pytest.raises(TypeError, match="takes 2 arguments"):
        made.relu(grid=1, block=64, args=(floats(),))
