"""Kernels for Intel's GPUs, compiled by their own compiler without one."""

import shutil
from pathlib import Path

import pytest

from data.records import Device, Operator
from targets import opencl, sycl
from targets.intel import TARGET as INTEL
from targets.machines.inventory import devices
from targets.remote import ocloc
from targets.remote.build import build
from tests.targets.rig import ADD, Rig
from tests.targets.test_opencl import CANDIDATE
from tests.targets.test_sycl import CANDIDATE as SYCL_CANDIDATE

SOURCE = """__kernel void add(__global const float* x, __global float* y) {
  __local float part[256];
  part[get_local_id(0)] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = part[255 - get_local_id(0)];
}
"""
needs_ocloc = pytest.mark.skipif(
    shutil.which("ocloc") is None, reason="no ocloc: apt-get install intel-opencl-icd"
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.cl"
    path.write_text(SOURCE)
    return path


@needs_ocloc
@pytest.mark.parametrize("device", ["acm-g10", "pvc"])
def test_figures_are_those_of_the_gpu(source: Path, device: str) -> None:
    """Arc A and PVC give registers, local memory and width of each kernel."""
    ok, text = ocloc.gpu_report(source, device)
    report = INTEL.parse_report(text)
    values = {m.name: (m.value, m.source) for m in report.metrics}
    assert ok
    assert values["shared_bytes"] == (1024.0, "ocloc: slm")
    assert values["subgroup_width"][0] in {8, 16, 32}
    assert values["registers_per_thread"][0] >= 128
    assert report.remarks[0].startswith(f"{device} add: simd ")


@needs_ocloc
def test_device_that_ocloc_lacks_is_said(source: Path) -> None:
    """A GPU that is too new refuses no kernel, and has no figures."""
    assert ocloc.gpu_report(source, "bmg-g99") == (
        True,
        "gpu bmg-g99: no figures, this ocloc does not know it: a newer one does",
    )


@needs_ocloc
def test_error_of_the_gpus_compiler_is_located(source: Path) -> None:
    """What ocloc refuses is refused, at the kernel's line."""
    source.write_text(SOURCE.replace("part[255", "parts[255"))
    ok, text = ocloc.gpu_report(source, "pvc")
    first = INTEL.parse_diagnostics(text)[0]
    assert not ok
    assert (first.file, first.line) == ("kernel.cl", 5)


def test_without_ocloc_nothing_is_refused(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its absence is a remark."""
    monkeypatch.setenv("PATH", "/nowhere")
    ok, text = ocloc.gpu_report(source, "pvc")
    assert ok
    assert INTEL.parse_report(text).remarks == (
        "pvc: no figures, ocloc is not installed (intel-opencl-icd)",
    )


@pytest.mark.skipif(opencl.library() is None, reason=f"no OpenCL: {opencl.INSTALL}")
@needs_ocloc
def test_candidate_for_a_gpu_is_built_behind_the_walls(tmp_path: Path) -> None:
    """Both compilers run in the sandbox; the figures are of the GPU alone."""
    device = Device(name="a770", target="intel", vendor="intel", arch="acm-g10", execution="none")
    operator = Operator(name="op", source=ADD)
    built = build(operator, CANDIDATE, device, zygote=None, cache=tmp_path)
    assert built.ok, built.detail
    assert {m.source.partition(":")[0] for m in built.metrics} == {"ocloc"}


@needs_ocloc
@pytest.mark.skipif(sycl.sycl_library() is None, reason=f"no SYCL: {sycl.SYCL_INSTALL}")
def test_sycl_for_a_gpu_is_built_from_the_same_code(tmp_path: Path) -> None:
    """The SPIR-V that runs on the processor is what ocloc counts registers of."""
    device = Device(name="a770", target="intel", vendor="intel", arch="acm-g10", language="sycl")
    operator = Operator(name="op", source=ADD)
    built = build(operator, SYCL_CANDIDATE, device, zygote=None, cache=tmp_path)
    assert built.ok, built.detail
    assert {m.source.partition(":")[0] for m in built.metrics} == {"ocloc"}
    assert built.remarks[0].startswith("acm-g10 add: simd ")


@pytest.mark.skipif(opencl.library() is None, reason=f"no OpenCL: {opencl.INSTALL}")
def test_gpu_that_is_not_here_is_executed_by_the_processor(rig: Rig) -> None:
    """Right and wrong are told apart, `execution` says how, and there is no time."""
    device = devices()["b580"]
    assert device.execution == "emulated"
    operator = Operator(name="op", source=ADD)
    for source, status in ((CANDIDATE, "ran"), (CANDIDATE.replace("2.0f", "2.1f"), "wrong")):
        built = build(operator, source, device, zygote=rig.zygote, cache=rig.folder)
        assert built.runs, built.detail
        run = rig.measure(source, device=device)
        assert run.status == status, run.detail
        assert (run.execution, run.timings) == ("emulated", ())


@needs_ocloc
def test_who_tells_the_figures_is_known_without_compiling() -> None:
    """The list of devices says for which GPUs there are registers and spills."""
    assert ocloc.figures("pvc") == "registers and spills of pvc by ocloc"
    assert "this ocloc does not know it" in ocloc.figures("no-such-chip")


def test_without_ocloc_there_are_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that brings them is named."""
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "ocloc is not installed (intel-opencl-icd)" in ocloc.figures("pvc")
