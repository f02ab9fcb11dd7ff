"""Intel: OpenCL C and SYCL, compiled and run on the processor by its run times."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from data.metrics import METRICS
from data.records import (
    Brief,
    Device,
    Diagnostic,
    Metric,
    Profile,
)
from targets import (
    cards,
    diagnostics,
    opencl,
    opencl_launch,
    sycl,
    sycl_launch,
    unitrace,
)
from targets.base import PROCESSOR, Capabilities, Program, Report
from targets.brief import brief
from targets.remote.kforge_launch import Half
from targets.remote.ocloc import figures

TOOL, SYCL = "opencl", "sycl"
FILES = {TOOL: "kernel.cl", SYCL: "kernel.cpp"}
"""The candidate's own file by tool."""
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


def _sycl_version() -> str:
    """Of the compiler, and of the run time that builds what it makes."""
    found = sycl.sycl_library()
    return f"{sycl.sycl_release(found)}, {_version()}" if found is not None else ""


PROGRAMS = {
    TOOL: Program(
        where=opencl.library,
        version=_version,
        run=opencl.run,
        languages=opencl_launch.OPENCL.languages,
        figures=figures,
    ),
    SYCL: Program(
        where=sycl.sycl_library,
        version=_sycl_version,
        run=sycl.sycl_run,
        languages=sycl_launch.SYCL.languages,
        figures=figures,
    ),
}


@dataclass(frozen=True, slots=True)
class IntelTarget:
    """The target of OpenCL C and SYCL on the processor and of Intel's GPUs."""

    name: str = "intel"
    vendor: str = "intel"
    languages: tuple[str, ...] = ("opencl", "sycl")
    halves: tuple[Half, ...] = (opencl_launch.OPENCL, sycl_launch.SYCL)
    tools: tuple[str, ...] = (TOOL, SYCL)
    programs: dict[str, Program] = field(default_factory=lambda: dict(PROGRAMS))
    nodes: tuple[str, ...] = (PROCESSOR,)
    models: str = ""

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """For this processor; for a GPU its own compiler is asked as well."""
        del language
        gpu = arch if cards.for_arch(arch) is not None else ""
        command = sycl.sycl_command if compiler == SYCL else opencl.command
        return (compiler, *command(source, output, gpu)[1:])

    def parse_diagnostics(self, text: str) -> tuple[Diagnostic, ...]:
        return diagnostics.parse(text, FILES[SYCL if f"{FILES[SYCL]}:" in text else TOOL])

    def parse_report(self, text: str) -> Report:
        """Memory by group and item, for a GPU what ocloc says instead; a remark a kernel.

        Of a GPU that ocloc does not know there are no figures: those of the processor are not its.
        """
        gpu = list(_GPU.finditer(text))
        found = gpu if _GPU_LINE.search(text) else list(_USAGE.finditer(text))
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

    def profile_command(self, program: Sequence[str]) -> tuple[str, ...]:
        return unitrace.command(program)

    def parse_profile(self, text: str) -> Profile:
        return unitrace.profile(text)

    def brief(self, device: Device, language: str = "") -> Brief:
        return brief(device, language or device.language or self.languages[0])

    def capabilities(self, found: frozenset[str], language: str = "") -> Capabilities:
        """What a kernel of another chip would do on this processor is no word on that chip."""
        ready, here = (language or TOOL) in found, PROCESSOR in found
        install = sycl.SYCL_INSTALL if language == SYCL else opencl.INSTALL
        name = "SYCL" if language == SYCL else "OpenCL"
        missing = [
            "" if ready else f"no {name} for processors on this machine: {install}",
            "" if here else "no such device here",
        ]
        return Capabilities(
            compile=ready,
            execute=ready and here,
            time=ready and here,
            why="; ".join(filter(None, missing)),
        )


TARGET = IntelTarget()


def _remark(usage: re.Match[str]) -> str:
    return (
        f"{usage['kernel']}: {usage['local']} bytes of local memory a group, "
        f"{usage['private']} private bytes an item"
    )
