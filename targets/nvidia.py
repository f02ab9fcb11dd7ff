"""NVIDIA: CUDA C through NVRTC or nvcc, Triton through its own compiler."""

from collections.abc import Sequence
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
from targets import cards, diagnostics, ncu, nvidia_launch, nvrtc, ptxas, torch_trace
from targets.base import Capabilities, Program, Report
from targets.brief import brief
from targets.occupancy import Occupancy, occupancy
from targets.remote.kforge_launch import Half

NVRTC = "nvrtc"
THREADS = 256
"""Of a group, for the occupancy before anything was launched."""


@cache
def _version() -> str:
    return nvrtc.Nvrtc().version()


PROGRAM = Program(where=nvrtc.Nvrtc.where, version=_version, run=nvrtc.run)


@dataclass(frozen=True, slots=True)
class NvidiaTarget:
    """The target of every CUDA device."""

    name: str = "nvidia"
    vendor: str = "nvidia"
    languages: tuple[str, ...] = ("cuda", "triton")
    halves: tuple[Half, ...] = (nvidia_launch.CUDA,)
    tools: tuple[str, ...] = (NVRTC, "nvcc")
    programs: dict[str, Program] = field(default_factory=lambda: {NVRTC: PROGRAM})
    nodes: tuple[str, ...] = ("/dev/nvidiactl", "/dev/dxg")
    models: str = "/proc/driver/nvidia/gpus/*/information"

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """Device code only: the host half of a source costs nine times as much."""
        del language
        if compiler == NVRTC:
            return nvrtc.command(source, output, arch)
        flags = ("-cubin", f"-arch={arch}", *nvrtc.OPTIONS, "-Xptxas", "-v")
        return (compiler, *flags, "-o", str(output), str(source))

    def parse_diagnostics(self, text: str) -> tuple[Diagnostic, ...]:
        return diagnostics.parse(text, "kernel.cu")

    def parse_report(self, text: str) -> Report:
        """The figures of ptxas; several kernels give the worst of each, and a remark each."""
        found = list(ptxas.usages(text))
        values = {
            "registers_per_thread": [u.registers for u in found],
            "spill_load_bytes": [u.spill_load_bytes for u in found],
            "spill_store_bytes": [u.spill_store_bytes for u in found],
            "stack_bytes": [u.stack_bytes for u in found],
            "shared_bytes": [u.shared_bytes for u in found],
            "barriers": [u.barriers for u in found],
        }
        metrics = [
            Metric(name=n, value=float(max(v)), unit=METRICS[n].unit, source="ptxas")
            for n, v in values.items()
            if v
        ]
        shares = [o.share for u in found if (o := _occupancy(u)) is not None]
        if shares:
            source = f"ptxas, groups of {THREADS} threads"
            term = METRICS["theoretical_occupancy"]
            metrics.append(Metric(name=term.name, value=min(shares), unit=term.unit, source=source))
        return Report(metrics=tuple(metrics), remarks=tuple(map(_remark, found)))

    def profile_command(self, program: Sequence[str]) -> tuple[str, ...]:
        return ncu.command(program)

    def parse_profile(self, text: str) -> Profile:
        """The table of ncu, or a trace of torch.profiler where counters are refused."""
        return torch_trace.profile(text) if text.lstrip().startswith("{") else ncu.profile(text)

    def brief(self, device: Device, language: str = "") -> Brief:
        return brief(device, language or device.language or self.languages[0])

    def capabilities(
        self,
        found: frozenset[str],
        language: str = "",  # noqa: ARG002 (one for all)
    ) -> Capabilities:
        compiles = any(tool in found for tool in self.tools)
        runs = any(node in found for node in self.nodes)
        missing = [
            "" if compiles else "no CUDA compiler: pip install nvidia-cuda-nvrtc",
            "" if runs else "no NVIDIA device on this machine",
        ]
        return Capabilities(
            compile=compiles,
            execute=compiles and runs,
            time=compiles and runs,
            why="; ".join(filter(None, missing)),
        )


TARGET = NvidiaTarget()


def _occupancy(usage: ptxas.Usage) -> Occupancy | None:
    """With groups of THREADS, since the report does not know the launch; None without a card."""
    sheet = cards.for_arch(usage.arch)
    if sheet is None:
        return None
    return occupancy(
        sheet.limits,
        registers=usage.registers,
        shared_bytes=usage.shared_bytes,
        threads=THREADS,
    )


def _remark(usage: ptxas.Usage) -> str:
    spills = usage.spill_load_bytes + usage.spill_store_bytes
    fits = _occupancy(usage)
    parts: Sequence[str] = [
        f"{usage.registers} registers",
        f"{usage.shared_bytes} bytes of static shared memory",
        *([f"{spills} bytes of spills"] if spills else []),
        *(
            [f"occupancy {fits.share:.0%} at {THREADS} threads, limited by {fits.limit}"]
            if fits
            else []
        ),
    ]
    return f"{usage.kernel}: {', '.join(parts)}"
