"""What the Prefect UI shows of a pair and of a campaign: rows, pages, keys. No Prefect here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from data.records import Iteration, Mode
from data.verdict import Verdict

if TYPE_CHECKING:  # the story of a pair is told without agents and machines
    from tasks.campaign import PairResult

PAGE_BYTES = 400_000
"""An artifact's event is refused at 1.5 MB; PREFECT.md advises to stay below 500 KB."""

Row = dict[str, str | int | None]


def slug(name: str) -> str:
    """The name as an artifact key: lower-case letters, digits, single dashes.

    >>> slug("Layer_Norm@cpu")
    'layer-norm-cpu'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unnamed"


def interval(speedup: float | None, low: float | None, high: float | None) -> str:
    """A speed-up with its 95 % interval; a dash where there is none.

    >>> interval(1.834, 1.8, 1.871)
    '1.83x [1.80, 1.87]'
    """
    if speedup is None:
        return "-"
    if low is None or high is None:
        return f"{speedup:.2f}x"
    return f"{speedup:.2f}x [{low:.2f}, {high:.2f}]"


def speed(iteration: Iteration) -> str:
    """The iteration's speed-up with its interval."""
    return interval(iteration.speedup, iteration.speedup_low, iteration.speedup_high)


def best(history: Sequence[Iteration]) -> Iteration | None:
    """The confirmed champion, else the fastest right candidate so far; None when none is right."""
    right = [i for i in history if i.right and i.candidate_id]
    confirmed = [i for i in right if i.move.mode is Mode.CONFIRM]
    return max(confirmed or right, key=lambda i: i.speedup or 0.0, default=None)


def progress(history: Sequence[Iteration], steps: int) -> float:
    """Share of the steps allowed, confirmation included, in per cent; below 100 until it ended."""
    return min(95.0, 100.0 * len(history) / (steps + 1))


def clean(text: str) -> str:
    r"""The text without what JSON over HTTP or a database refuses: lone surrogates and NUL.

    >>> clean("a\ud800b\x00")
    'a?b'
    """
    return text.encode(errors="replace").decode().replace("\x00", "")


def step_rows(history: Sequence[Iteration]) -> list[Row]:
    """One row an iteration."""
    return [_step_row(i) for i in history]


def _step_row(iteration: Iteration) -> Row:
    times = iteration.run.timings if iteration.run else ()
    return {
        "step": iteration.move.step,
        "mode": iteration.move.mode.value,
        "lineage": iteration.move.lineage,
        "verdict": iteration.verdict.value,
        "speed-up": speed(iteration),
        "techniques added": ", ".join(iteration.techniques_added),
        "reason": clean(iteration.reason),
        "advice": clean(iteration.advice.change) if iteration.advice else "",
        "baseline": iteration.baseline,
        "time": ", ".join(f"{t.shape} {t.candidate_us:.1f} us" for t in times),
    }


def best_page(iteration: Iteration) -> str:
    """Markdown: the champion's kernel with its speed-up and what that is measured against."""
    source = iteration.candidate.source if iteration.candidate else ""
    if len(source) > PAGE_BYTES:
        half = PAGE_BYTES // 2
        cut = len(source) - 2 * half
        source = f"{source[:half]}\n# ... {cut} characters cut ...\n{source[-half:]}"
    state = "confirmed" if iteration.move.mode is Mode.CONFIRM else "not confirmed yet"
    fence = "`" * (1 + max(map(len, re.findall(r"`{2,}", source)), default=2))
    return clean(
        f"# {iteration.operator.name} on {iteration.device.name}\n\n"
        f"**{iteration.verdict.value}** ({state}): {speed(iteration)} over"
        f" {iteration.baseline or 'nothing (not timed)'}, contract {iteration.contract},"
        f" candidate `{iteration.candidate_id}` of step {iteration.move.step}\n\n"
        f"{iteration.reason}\n\n{fence}python\n{source}\n{fence}\n"
    )


def title(operators: Sequence[str], devices: Sequence[str], epoch: str) -> str:
    """A campaign in a line that a person can scan.

    >>> title(["softmax", "mish", "gelu", "relu", "cumsum"], ["cpu"], "2026-11-30")
    'softmax, mish, gelu and 2 more on cpu, 2026-11-30'
    """
    return f"{_listed(operators)} on {_listed(devices)}, {epoch}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def result_rows(results: Sequence[PairResult]) -> list[Row]:
    """One row a pair."""
    return [
        {
            "operator": r.operator,
            "device": r.device,
            "verdict": r.verdict + (" (needs review)" if r.needs_review else ""),
            "baseline": r.baseline or "-",
            "speed-up": interval(r.speedup, r.speedup_low, r.speedup_high),
            "steps": r.steps,
            "seconds": f"{r.seconds:.1f}",
        }
        for r in results
    ]


def summary(results: Sequence[PairResult]) -> str:
    """One sentence on the campaign."""
    faster = sum(r.verdict == Verdict.FASTER for r in results)
    new = sum(r.new_steps for r in results)
    return f"{len(results)} pairs, {faster} of them confirmed faster; {new} new steps"
