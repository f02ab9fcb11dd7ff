"""The plain CPU: C++ with OpenMP through g++ or clang++."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from data.errors import MachineError
from data.records import (
    Brief,
    Device,
    Diagnostic,
    Metric,
    Profile,
)
from targets import diagnostics
from targets.base import Capabilities, Program, Report
from targets.remote import kforge_launch

EXAMPLES = Path(__file__).parent / "examples" / "cpu"
REMARKS = 20
REMARK_LENGTH = 160

GCC_REMARKS = ("-fopt-info-vec", "-fopt-info-vec-missed")
CLANG_REMARKS = (
    "-Rpass=loop-vectorize",
    "-Rpass-missed=loop-vectorize",
    "-Rpass-analysis=loop-vectorize",
)
_REMARK = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: (?P<kind>optimized|missed|remark): +(?P<text>.*)$"
)
_VECTORISED = re.compile(r"^(?:loop vectorized|vectorized loop)")
_MISSED = re.compile(r"^(?:couldn't vectorize loop|loop not vectorized)")
_NOISE = re.compile(r"__builtin_GOMP|^not vectorized: vectorization is not profitable\.$")
"""The second is said of straight-line code around every parallel region."""
_CALL = re.compile(r"^statement clobbers memory: (?:\S+ = )?(?:__builtin_)?(?P<callee>\w+) \(.*")


@dataclass(frozen=True, slots=True, order=True)
class Remark:
    """One thing said about a line of the candidate's file; the smallest is the most telling."""

    rank: int
    """0 a reason at a missed loop, 1 another reason, 2 what was vectorised."""
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """The target of every device whose kernels are C or C++ on the host."""

    name: str = "cpu"
    vendor: str = "cpu"
    languages: tuple[str, ...] = kforge_launch.LANGUAGES
    halves: tuple[kforge_launch.Half, ...] = (kforge_launch.CPP,)
    tools: tuple[str, ...] = ("g++", "clang++")
    programs: dict[str, Program] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    models: str = ""

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """`arch` is in the key of what is compiled; the compiler finds it by itself."""
        del arch
        plain = kforge_launch.compile_command(source, output, compiler=compiler, language=language)
        report = CLANG_REMARKS if "clang" in Path(compiler).name else GCC_REMARKS
        return (plain[0], "-Wall", "-Wno-unknown-pragmas", *report, *plain[1:])

    def parse_diagnostics(self, text: str) -> tuple[Diagnostic, ...]:
        return diagnostics.parse(text)

    def parse_report(self, text: str) -> Report:
        """Loops by source line; one that OpenMP doubled counts as vectorised if one copy is."""
        said = [m for m in map(_REMARK.match, text.splitlines()) if m is not None]
        own = [m for m in said if "/" not in m["file"]]
        good = {int(m["line"]) for m in own if _VECTORISED.match(m["text"])}
        bad = {int(m["line"]) for m in own if _MISSED.match(m["text"])} - good
        tool = "clang" if "[-Rpass" in text else "g++"
        counts = {"loops_vectorised": len(good), "loops_missed": len(bad)}
        return Report(
            metrics=tuple(
                Metric(name=name, value=float(count), unit="count", source=tool)
                for name, count in counts.items()
            ),
            remarks=tuple(f"{r.line}: {r.text}" for r in _ranked(said, good, bad)),
        )

    def profile_command(self, program: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def parse_profile(self, text: str) -> Profile:
        raise MachineError(f"the processor has no profiler here; got {len(text)} characters")

    def brief(self, device: Device, language: str = "") -> Brief:
        """The example is C++; plain C differs in the linkage alone."""
        guide = (EXAMPLES / "guide.md").read_text()
        flags = " ".join((*kforge_launch.CPP_FLAGS, "-std=c++17"))
        return Brief(
            language=language or device.language or "cpp",
            guide=guide.replace("{flags}", flags).replace("{arch}", device.arch),
            example_operator=(EXAMPLES / "operator.py").read_text(),
            example_kernel=(EXAMPLES / "kernel.py").read_text(),
        )

    def capabilities(
        self,
        found: frozenset[str],
        language: str = "",  # noqa: ARG002 (one for all)
    ) -> Capabilities:
        ready = any(tool in found for tool in self.tools)
        why = "" if ready else "no C++ compiler on this machine: install g++ or clang"
        return Capabilities(compile=ready, execute=ready, time=ready, why=why)


TARGET = CpuTarget()


def _ranked(said: list[re.Match[str]], good: set[int], bad: set[int]) -> list[Remark]:
    """Distinct remarks, most telling first; a reason goes to the loop it was given for."""
    found: set[Remark] = set()
    loop: int | None = None
    for remark in said:
        own = "/" not in remark["file"]
        line = loop if loop is not None else int(remark["line"]) if own else None
        text = _plain(remark["text"])
        if own and _MISSED.fullmatch(text):
            loop = (
                int(remark["line"]) if remark["kind"] == "missed" else None
            )  # clang: reason first
            continue
        loop = None
        if line is not None and not _NOISE.search(remark["text"]):
            praise = _VECTORISED.match(text) or remark["kind"] == "optimized"
            rank = 2 if praise else 0 if line in bad else 1
            if rank != 1 or line not in good:  # the vectoriser tries the rest of a loop again
                found.add(Remark(rank, line, text))
    return sorted(found)[:REMARKS]


def _plain(text: str) -> str:
    """The remark without option names, its length bounded; a blocking call is named."""
    bare = text.split(" [-Rpass", maxsplit=1)[0].removeprefix("not vectorized: ")
    bare = _CALL.sub(r"calls \g<callee>, which has no vector form", bare)
    return bare.removeprefix("loop not vectorized: ")[:REMARK_LENGTH]
