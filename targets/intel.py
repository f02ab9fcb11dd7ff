"""Intel: OpenCL C, compiled and run on the processor by its run time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from data.metrics import METRICS
from data.records import (
    Admission,
    Brief,
    BuildResult,
    Device,
    Diagnostic,
    Metric,
    Profile,
    RunResult,
    Shape,
)
from targets import cards, diagnostics, opencl, opencl_launch, roofline, unitrace
from targets.base import Capabilities, Program, Report
from targets.brief import brief
from targets.remote.kforge_launch import Half

TOOL = "opencl"
PROCESSOR = "/proc/cpuinfo"
_USAGE = re.compile(
    r"^usage (?P<kernel>\w+): local (?P<local>\d+), private (?P<private>\d+), multiple \d+$",
    re.MULTILINE,
)
_GPU = re.compile(
    r"^gpu \S+ \w+: simd (?P<simd>\d+), grf (?P<grf>\d+), slm (?P<slm>\d+), spill (?P<spill>\d+)$",
    re.MULTILINE,
)
_GPU_LINE = re.compile(r"^gpu .*$", re.MULTILINE)
VALUES = {"shared_bytes": "local", "stack_bytes": "private"}
GPU_VALUES = {
    "shared_bytes": "slm",
    "registers_per_thread": "grf",
    "spill_thread_bytes": "spill",
    "subgroup_width": "simd",
}
"""registers_per_thread counts registers of the hardware thread, which holds a whole sub-group."""
_VECTORISED = re.compile(r'^Kernel "(?P<kernel>\w+)" was (?P<how>.*vectorized.*)$', re.MULTILINE)


def _version() -> str:
    found = opencl.library()
    return opencl.release(found) if found is not None else ""


PROGRAM = Program(where=opencl.library, version=_version, run=opencl.run)


@dataclass(frozen=True, slots=True)
class IntelTarget:
    """The target of OpenCL C on the processor and of Intel's GPUs."""

    name: str = "intel"
    vendor: str = "intel"
    languages: tuple[str, ...] = ("opencl",)
    halves: tuple[Half, ...] = (opencl_launch.OPENCL,)
    tools: tuple[str, ...] = (TOOL,)
    programs: dict[str, Program] = field(default_factory=lambda: {TOOL: PROGRAM})
    nodes: tuple[str, ...] = (PROCESSOR,)
    models: str = ""

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """For this processor; for a GPU its own compiler is asked as well."""
        del language
        gpu = arch if cards.for_arch(arch) is not None else ""
        return (compiler, *opencl.command(source, output, gpu)[1:])

    def parse_diagnostics(self, text: str) -> tuple[Diagnostic, ...]:
        return diagnostics.parse(text, "kernel.cl")

    def parse_report(self, text: str) -> Report:
        """Memory by group and item, for a GPU what ocloc says instead; a remark a kernel."""
        gpu = list(_GPU.finditer(text))
        found = gpu or list(_USAGE.finditer(text))
        values = GPU_VALUES if gpu else VALUES
        tool = "ocloc" if gpu else TOOL
        metrics = tuple(
            Metric(
                name=name,
                value=float(max(int(m[word]) for m in found)),
                unit=METRICS[name].unit,
                source=f"{tool}: {word}",
            )
            for name, word in values.items()
            if found
        )
        vectors = tuple(f"{m['kernel']}: {m['how']}" for m in _VECTORISED.finditer(text))
        said = tuple(m[0].removeprefix("gpu ") for m in _GPU_LINE.finditer(text))
        plain = () if gpu else tuple(map(_remark, found))
        return Report(metrics=metrics, remarks=(*said, *vectors, *plain))

    def readable(self, text: str) -> str:
        return diagnostics.readable(text)

    def profile(
        self, admission: Admission, shape: Shape, build: BuildResult, run: RunResult
    ) -> Profile:
        return roofline.profile(admission, shape, build, run)

    def profile_command(self, program: Sequence[str]) -> tuple[str, ...]:
        return unitrace.command(program)

    def parse_profile(self, text: str) -> Profile:
        return unitrace.profile(text)

    def brief(self, device: Device, language: str = "") -> Brief:
        return brief(device, language or self.languages[0])

    def capabilities(self, found: frozenset[str]) -> Capabilities:
        """What a kernel of another chip would do on this processor is no word on that chip."""
        ready, here = TOOL in found, PROCESSOR in found
        missing = [
            "" if ready else f"no OpenCL for processors on this machine: {opencl.INSTALL}",
            "" if here else "no such device here",
        ]
        return Capabilities(
            compile=ready,
            execute=ready and here,
            time=ready and here,
            why="; ".join(filter(None, missing)),
        )


INTEL = IntelTarget()


def _remark(usage: re.Match[str]) -> str:
    return (
        f"{usage['kernel']}: {usage['local']} bytes of local memory a group, "
        f"{usage['private']} private bytes an item"
    )
