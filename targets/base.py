"""What a target is: how a vendor's kernels are compiled, read, profiled and explained.

A target does no input or output: it returns commands and parses text, and whoever holds a machine
runs them. A new vendor is one file with one value of this contract, entered in `targets.TARGETS`.
Everything here is stdlib only, since the needed target travels to the machine.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a device can do here, and why not where it cannot."""

    compile: bool
    """Diagnostics and static metrics from the vendor's own compiler."""
    execute: bool
    """Right or wrong."""
    time: bool
    """Only real hardware has a time."""
    why: str = ""
    """The missing piece and how to get it; empty when nothing is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a compiler says about code that it accepted."""

    metrics: tuple[Metric, ...] = ()
    remarks: tuple[str, ...] = ()
    """`line: text`, the candidate's own file only, most telling first."""


class Target(Protocol):
    """One vendor's half of KForge; every method is a pure function of its arguments."""

    @property
    def name(self) -> str:
        """Key in `TARGETS`."""

    @property
    def vendor(self) -> str: ...

    @property
    def languages(self) -> tuple[str, ...]:
        """What the launcher takes for this target, the preferred one first."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Executables of which one is needed to compile, the preferred one first."""

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str
    ) -> tuple[str, ...]:
        """The command that compiles `source` and prints the compiler's report."""

    def parse_diagnostics(self, text: str) -> tuple[Diagnostic, ...]:
        """Messages of the compiler, errors first; empty or cut-off text is no fault."""

    def parse_report(self, text: str) -> Report:
        """Static metrics and remarks in the same output."""

    def readable(self, text: str) -> str:
        """The compiler's output without what it quotes from files that are not the candidate's."""

    def profile(
        self, admission: Admission, shape: Shape, build: BuildResult, run: RunResult
    ) -> Profile:
        """What the analyst reads of a candidate that was timed at `shape`."""

    def brief(self, device: Device) -> Brief:
        """What the generator must know: rules, flags and one verified example."""

    def capabilities(self, found: frozenset[str]) -> Capabilities:
        """What is possible where the executables and device nodes in `found` exist."""
