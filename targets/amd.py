"""AMD: HIP by clang with device libraries, or by hipcc on a host with ROCm."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from data.metrics import METRICS
from data.records import (
    Brief,
    Device,
    Diagnostic,
    Metric,
    Profile,
)
from targets import amd_clang, amd_launch, diagnostics, rocprof
from targets.base import Capabilities, Program, Report
from targets.brief import brief
from targets.remote.kforge_launch import Half

CLANG = "hip-clang"
_REMARK = re.compile(
    r"remark: +(?P<name>[\w /\[\]]+?): +(?P<value>\S+) \[-Rpass-analysis=kernel-re"
)
_TERMS = {
    "VGPRs": "registers_per_thread",
    "SGPRs": "scalar_registers",
    "ScratchSize [bytes/lane]": "stack_bytes",
    "VGPRs Spill": "spilled_registers",
    "LDS Size [bytes/block]": "shared_bytes",
    "Occupancy [waves/SIMD]": "sub_groups_per_scheduler",
}


@cache
def _version() -> str:
    return "clang 19, rocm-device-libs"


PROGRAM = Program(where=amd_clang.where, version=_version, run=amd_clang.run)


@dataclass(frozen=True, slots=True)
class AmdTarget:
    """The target of every HIP device."""

    name: str = "amd"
    vendor: str = "amd"
    languages: tuple[str, ...] = ("hip",)
    halves: tuple[Half, ...] = (amd_launch.HIP,)
    tools: tuple[str, ...] = (CLANG, "hipcc")
    programs: dict[str, Program] = field(default_factory=lambda: {CLANG: PROGRAM})
    nodes: tuple[str, ...] = ("/dev/kfd",)
    models: str = ""

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """Device code only."""
        del language
        if compiler == CLANG:
            return amd_clang.command(source, output, arch)
        flags = ("--genco", f"--offload-arch={arch}", "-Rpass-analysis=kernel-resource-usage")
        return (compiler, *flags, "-O3", "-std=c++17", "-o", str(output), str(source))

    def parse_diagnostics(self, text: str) -> tuple[Diagnostic, ...]:
        return diagnostics.parse(text, "kernel.hip")

    def parse_report(self, text: str) -> Report:
        """Remarks of clang on resources; several kernels give the worst of each, a remark each."""
        found = list(_usages(text))
        metrics = []
        for name in dict.fromkeys(n for _, usage in found for n in usage):
            values, term = [u[name] for _, u in found if name in u], METRICS[_TERMS[name]]
            worst = min(values) if name.startswith("Occupancy") else max(values)
            source = f"clang: {name}"
            metrics.append(Metric(name=term.name, value=worst, unit=term.unit, source=source))
        return Report(metrics=tuple(metrics), remarks=tuple(_said(k, u) for k, u in found))

    def profile_command(self, program: Sequence[str]) -> tuple[str, ...]:
        return rocprof.command(program)

    def parse_profile(self, text: str) -> Profile:
        return rocprof.profile(text)

    def brief(self, device: Device, language: str = "") -> Brief:
        return brief(device, language or device.language or self.languages[0])

    def capabilities(
        self,
        found: frozenset[str],
        language: str = "",  # noqa: ARG002 (one for all)
    ) -> Capabilities:
        """The judge shares no memory with an AMD device yet: kernels run in the emulator only."""
        compiles = any(tool in found for tool in self.tools)
        missing = [
            "" if compiles else amd_clang.MISSING,
            "the judge cannot use an AMD device yet"
            if any(node in found for node in self.nodes)
            else "no AMD device on this machine",
        ]
        why = "; ".join(filter(None, missing))
        return Capabilities(compile=compiles, execute=False, time=False, why=why)


TARGET = AmdTarget()


def _usages(text: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Each kernel with what it takes, by clang's names; a cut-off value is left out."""
    kernel, usage = "", dict[str, float]()
    for said in _REMARK.finditer(text):
        if said["name"] == "Function Name":
            if usage:
                yield kernel, usage
            kernel, usage = said["value"], {}
        elif said["name"] in _TERMS and said["value"].isdigit():
            usage[said["name"]] = float(said["value"])
    if usage:
        yield kernel, usage


def _said(kernel: str, usage: dict[str, float]) -> str:
    words = {
        "VGPRs": "vector registers",
        "SGPRs": "scalar registers",
        "LDS Size [bytes/block]": "bytes of LDS",
        "ScratchSize [bytes/lane]": "bytes of scratch a lane",
        "Occupancy [waves/SIMD]": "waves on a SIMD",
    }
    parts = [f"{usage[name]:.0f} {word}" for name, word in words.items() if name in usage]
    return f"{kernel}: {', '.join(parts)}"
