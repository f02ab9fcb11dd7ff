"""Apple: Metal through torch on a Mac; elsewhere checked by translation and emulated."""

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from data.records import (
    Brief,
    Device,
    Diagnostic,
    Profile,
)
from targets import apple_launch, diagnostics, xctrace
from targets.base import Capabilities, Program, Report
from targets.brief import brief
from targets.remote.kforge_launch import Half

METAL = "metal"
FRAMEWORK = Path("/System/Library/Frameworks/Metal.framework")


def _where() -> Path | None:
    """The driver's compiler; None anywhere but on a Mac."""
    return FRAMEWORK if FRAMEWORK.exists() else None


def _version() -> str:
    return f"Metal of macOS {platform.mac_ver()[0]}"


def _run(words: Sequence[str]) -> int:
    """Takes what `compile_command` gave; 1 and the compiler's text on stderr when it refuses."""
    _, _, output, source = words
    try:
        apple_launch.METAL.compile(METAL, Path(source), Path(output))
    except RuntimeError as error:
        sys.stderr.write(str(error).replace("program_source:", "kernel.metal:"))
        return 1
    return 0


@dataclass(frozen=True, slots=True)
class AppleTarget:
    """The target of every Apple GPU."""

    name: str = "apple"
    vendor: str = "apple"
    languages: tuple[str, ...] = (METAL,)
    halves: tuple[Half, ...] = (apple_launch.METAL,)
    tools: tuple[str, ...] = (METAL,)
    programs: dict[str, Program] = field(
        default_factory=lambda: {METAL: Program(where=_where, version=_version, run=_run)}
    )
    nodes: tuple[str, ...] = (str(FRAMEWORK),)
    models: str = ""

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """The driver compiles for the device in hand: `arch` is in the key of the cache alone."""
        del language, arch
        return (compiler, "-o", str(output), str(source))

    def parse_diagnostics(self, text: str) -> tuple[Diagnostic, ...]:
        return diagnostics.parse(text, "kernel.metal")

    def parse_report(self, text: str) -> Report:  # noqa: ARG002 (the contract's)
        """Nothing: Metal's compiler prints no registers, no spills and no occupancy."""
        return Report()

    def profile_command(self, program: Sequence[str]) -> tuple[str, ...]:
        return xctrace.command(program)

    def parse_profile(self, text: str) -> Profile:
        return xctrace.profile(text)

    def brief(self, device: Device, language: str = "") -> Brief:
        return brief(device, language or device.language or METAL)

    def capabilities(
        self,
        found: frozenset[str],
        language: str = "",  # noqa: ARG002 (one for all)
    ) -> Capabilities:
        ready = METAL in found
        here = ready and any(node in found for node in self.nodes)
        why = "" if ready else "no Metal compiler: sources are checked by translation (needs a Mac)"
        return Capabilities(compile=ready, execute=here, time=here, why=why)


TARGET = AppleTarget()
