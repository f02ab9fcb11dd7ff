"""A new chip in one file: WGSL on lavapipe, from the launcher's half to the judge's verdict."""

from pathlib import Path

import pytest
import torch

from data.records import Device, Operator
from targets import wgsl
from targets.remote.build import build
from targets.remote.kforge_launch import HALVES, kernels, signatures
from targets.wgsl import TARGET
from tests.targets.exported import assert_example_is_right
from tests.targets.rig import ADD, Rig

DEVICE = Device(name="lavapipe", target="wgsl", vendor="khronos", arch="lavapipe")
MODULE = """
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(0) var<storage, read> x: array<f32>;  // @binding(9) var<uniform> no: u32;
@group(0) @binding(2) var<uniform> n: u32;
@group(0) @binding(3) var<uniform> by: f32;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < n) { y[id.x] = x[id.x] * by; }
}
@compute @workgroup_size(1) fn mark(@builtin(workgroup_id) id: vec3<u32>) {
  y[id.x + 2u * id.y] = f32(n);
}
"""
CANDIDATE = '''
import torch
from torch import nn
from kforge_launch import kernels

K = kernels(r"""
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> o: array<f32>;
@group(0) @binding(3) var<uniform> n: u32;
@compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < n) { o[id.x] = x[id.x] + 2.0 * y[id.x]; }
}""", language="wgsl")

class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        K.add(grid=(-(-x.numel() // 64),), args=(x, y, o, x.numel()))
        return o
'''
needs_wgpu = pytest.mark.skipif(wgsl._where() is None, reason=f"no WGSL: {wgsl.WGSL_INSTALL}")


def test_variables_of_a_module_are_the_parameters_of_its_kernels() -> None:
    """In the order of their numbers, for each entry point; comments declare nothing."""
    parameters = ("const float* x", "float* y", "unsigned int n", "float by")
    assert signatures(HALVES["wgsl"].as_c(MODULE)) == {"scale": parameters, "mark": parameters}


@needs_wgpu
def test_kernel_computes_and_grid_has_dimensions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors go to the device and come back; a grid counts groups, x first."""
    monkeypatch.setenv("KFORGE_LAUNCH_CACHE", str(tmp_path))
    k = kernels(MODULE, language="wgsl")
    x, y = torch.arange(1003.0)[3:], torch.full((1002,), 7.0)[1:1001]
    k.scale(grid=(16,), args=(x, y, 1000, 3.0))
    torch.testing.assert_close(y, 3 * x)
    k.mark(grid=(2, 3), args=(x, y, 5, 0.0))
    assert y[:7].tolist() == [5.0] * 6 + [float(x[6]) * 3]
    with pytest.raises(ValueError, match="says its block and its memory itself"):
        k.scale(grid=(16,), block=(64,), args=(x, y, 1000, 3.0))


@needs_wgpu
def test_errors_are_located_and_verdicts_are_told_apart(rig: Rig) -> None:
    """Behind the walls: a line for what naga refuses, right and wrong for what runs."""
    operator = Operator(name="op", source=ADD)
    broken = CANDIDATE.replace("2.0 * y", "2.0 * z")
    built = build(operator, broken, DEVICE, zygote=rig.zygote, cache=rig.folder)
    assert not built.ok
    first = built.diagnostics[0]
    assert (first.file, first.line) == ("kernel.wgsl", 7)
    assert "no definition in scope for identifier: `z`" in first.message
    for source, status in ((CANDIDATE, "ran"), (CANDIDATE.replace("2.0", "2.1"), "wrong")):
        built = build(operator, source, DEVICE, zygote=rig.zygote, cache=rig.folder)
        assert built.ok, built.detail
        run = rig.measure(source, device=DEVICE)
        assert run.status == status, run.detail


@needs_wgpu
def test_example_is_right(tmp_path: Path) -> None:
    """The one-shot example computes its operator, with the launcher that an export carries."""
    brief = TARGET.brief(DEVICE)
    assert_example_is_right(brief, TARGET.halves[0], tmp_path)
