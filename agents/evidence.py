"""What an agent is told about earlier steps: failures located, attempts in one line each."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agents.excerpt import brief_number, clean
from data.records import BuildResult, Diagnostic, Draw, Iteration, Mode, Request, Timing

ERRORS = 5
"""Distinct compiler errors shown; later ones mostly follow from the first (LLM.md, section 7)."""
AROUND = 3
"""Source lines on each side of an error."""
LOG_LINES = 10
DRAWS = 3
ATTEMPTS = 20
METRICS = 12
"""Of the compiler: registers, spills, shared memory, missed loops."""
REASON = 100
"""Characters of a reason in the table of attempts."""
_NAMES = re.compile(r"[\u2018'`\"][^\u2019'`\"]*[\u2019'`\"]|\d+")
"""What g++ and clang put into quotation marks, and numbers."""

_INTRINSICS = re.compile(r"\b_mm(256|512)?_\w+|\bsv\w+_f32|\bv\w+q_f32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The fastest right candidate so far."""

    iteration: Iteration
    speedup: str
    time_us: str | None
    """With the shape, and what PyTorch took beside it."""
    of_floor: str | None
    """Roofline floor over time in per cent: 100 is the limit."""


def best(request: Request) -> Best | None:
    """The fastest right candidate of the history; None before there is one."""
    right = [i for i in request.history if i.right and i.candidate and i.candidate.source]
    if not right:
        return None
    top = max(right, key=lambda i: i.speedup or 0.0)
    timing = top.run.timings[0] if top.run and top.run.timings else None
    return Best(
        iteration=top,
        speedup=f"{top.speedup:.2f}x over {top.baseline}" if top.speedup else "not timed",
        time_us=_beside(timing) if timing else None,
        of_floor=f"{100 * timing.floor_us / timing.candidate_us:.0f}"
        if timing and timing.floor_us
        else None,
    )


def _beside(timing: Timing) -> str:
    mine, theirs = brief_number(timing.candidate_us), brief_number(timing.baseline_us)
    return f"{mine} us at `{timing.shape}`, {timing.baseline} {theirs} us beside it"


def subject(request: Request) -> Iteration | None:
    """The step that the move goes on from: its parent, or the latest of its lineage to mend."""
    if request.parent is not None or request.move.mode is not Mode.FIX:
        return request.parent
    own = (i for i in reversed(request.history) if i.move.lineage == request.move.lineage)
    return next(own, None)


def report(iteration: Iteration) -> str:
    """What the compiler counted in a candidate, one line; empty when it said nothing."""
    metrics = iteration.build.metrics[:METRICS] if iteration.build else ()
    source = iteration.candidate.source if iteration.candidate else ""
    if _INTRINSICS.search(source):  # the compiler has no loops left to vectorise there
        metrics = tuple(m for m in metrics if not m.name.startswith("loops_"))
    return ", ".join(f"{m.name} {brief_number(m.value)} {m.unit}".strip() for m in metrics)


def failure(iteration: Iteration) -> str:
    """Why a step was not right: diagnostics with source lines, or where the output is wrong."""
    build, run = iteration.build, iteration.run
    source = iteration.candidate.source if iteration.candidate else ""
    parts = [f"Verdict: {iteration.verdict}. {clean(iteration.reason)}"]
    if build is not None and not build.ok:
        parts += [_diagnostics(build, source)]
    if run is not None:
        parts += [_wrong(iteration), _tail(run.log)]
    return "\n\n".join(part for part in parts if part)


def _diagnostics(build: BuildResult, source: str) -> str:
    shown = list(_distinct(d for d in build.diagnostics if d.severity == "error"))[:ERRORS]
    texts = [f"{_place(d)}: {d.severity}: {clean(d.message)}{_around(source, d)}" for d in shown]
    return "\n\n".join([*texts, _tail(build.log)])


def _distinct(diagnostics: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    """The first of each kind: messages that differ in names and numbers only count as one."""
    seen: set[str] = set()
    for diagnostic in diagnostics:
        kind = _NAMES.sub("_", diagnostic.message)
        if kind not in seen:
            seen.add(kind)
            yield diagnostic


def _place(diagnostic: Diagnostic) -> str:
    name = diagnostic.file.rsplit("/", 1)[-1]
    return f"{name}:{diagnostic.line}" if diagnostic.line else name


def _around(source: str, diagnostic: Diagnostic) -> str:
    """The lines of the candidate around the error; its own line alone when it is not found."""
    wanted = diagnostic.source_line.strip()
    lines = source.splitlines()
    at = next((i for i, line in enumerate(lines) if wanted and line.strip() == wanted), None)
    if at is None:
        return f"\n> {diagnostic.source_line}" if wanted else ""
    start = max(0, at - AROUND)
    near = enumerate(lines[start : at + AROUND + 1], start)
    return "".join(f"\n{'>' if i == at else ' '} {line}" for i, line in near)


def _wrong(iteration: Iteration) -> str:
    """The first draws that were refused; they hold indices and patterns, no expected values."""
    refused = [d for d in iteration.run.draws if not d.ok] if iteration.run else []
    return "\n".join(_draw(d) for d in refused[:DRAWS])


def _draw(draw: Draw) -> str:
    limit = "11 is the limit of honest kernels"
    error = f"error {brief_number(draw.error)} ({limit}); " if draw.error is not None else ""
    return f"- shape {draw.shape}, inputs {draw.distribution}: {error}{clean(draw.located)}"


def _tail(log: str) -> str:
    lines = [line for line in clean(log).splitlines() if line.strip()][-LOG_LINES:]
    return "Last lines of the log:\n" + "\n".join(lines) if lines else ""


def attempts(request: Request, count: int = ATTEMPTS) -> list[str]:
    """The latest steps, one line each."""
    return [_attempt(i) for i in request.history[-count:]]


def _attempt(iteration: Iteration) -> str:
    made = iteration.candidate
    tags = ", ".join(iteration.detected or (made.techniques if made else ())) or "-"
    speed = f"{iteration.speedup:.2f}x" if iteration.speedup else "-"
    gain = iteration.gain_over_parent
    change = f", {gain:.2f}x over its parent" if gain else ""
    advice = f"; advice: {clean(iteration.advice.change)[:REASON]}" if iteration.advice else ""
    move = iteration.move
    reason = " ".join(clean(iteration.reason).split())[:REASON]
    return (
        f"{move.step} | {move.lineage} | {move.mode} | {iteration.verdict} | {speed}{change} | "
        f"{tags} | {reason}{advice}".replace("\n", " ")
    )
