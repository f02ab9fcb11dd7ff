"""What a target is: how a vendor's kernels are compiled, read, profiled and explained.

A target does no input or output: it returns commands and parses text, and whoever holds a machine
runs them. A new vendor is one file with one value of this contract, which it calls `TARGET`.
Everything here is stdlib only, since the needed target travels to the machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from data.records import (
    Brief,
    Device,
    Diagnostic,
    Metric,
    Profile,
)
from targets.remote.kforge_launch import Half

PROCESSOR = "/proc/cpuinfo"
"""Among the nodes of a target whose kernels run on the host's processor."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A compiler that is a library: it runs in a process forked for it, behind the same walls."""

    where: Callable[[], Path | None]
    """The library; None where it is not installed."""
    version: Callable[[], str]
    run: Callable[[Sequence[str]], int]
    """Takes a command of `Target.compile_command`, prints to stderr, returns the exit status."""
    languages: tuple[str, ...] = ()
    """That it compiles; empty for all of its target's."""
    figures: Callable[[str], str] = lambda _: ""
    """Whose figures a kernel has on a chip that is not here, by arch; empty for its own."""


class Target(Protocol):
    """One vendor's half of KForge; every method is a pure function of its arguments."""

    @property
    def name(self) -> str:
        """Key in `TARGETS`."""

    @property
    def vendor(self) -> str: ...

    @property
    def languages(self) -> tuple[str, ...]:
        """What a candidate may be written in, the preferred one first."""

    @property
    def halves(self) -> tuple[Half, ...]:
        """The launcher's halves; a language of none of them is built when it is imported."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Executables and programs of which one is needed to compile, the preferred one first."""

    @property
    def programs(self) -> dict[str, Program]:
        """Those of `tools` that are libraries, by name."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Files of which one shows that a device is here; empty for the processor itself."""

    @property
    def models(self) -> str:
        """Pattern of the files that name the devices here; empty where the system has none."""

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """The command that compiles `source` for `arch` and prints the compiler's report."""

    def parse_diagnostics(self, text: str) -> tuple[Diagnostic, ...]:
        """Messages of the compiler, errors first; empty or cut-off text is no fault."""

    def parse_report(self, text: str) -> Report:
        """Static metrics and remarks in the same output."""

    def profile_command(self, program: Sequence[str]) -> tuple[str, ...]:
        """Runs `program` under the vendor's profiler; empty where there is none."""

    def parse_profile(self, text: str) -> Profile:
        """What that command printed. MachineError, in one line, when nothing of it can be read."""

    def brief(self, device: Device, language: str = "") -> Brief:
        """What the generator must know to write in `language`, the preferred one by default."""

    def capabilities(self, found: frozenset[str], language: str = "") -> Capabilities:
        """What is possible in `language` where the tools and nodes in `found` exist."""
