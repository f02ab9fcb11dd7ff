"""The judgement on a candidate: a pure function of the evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from data.records import BuildResult, Contract, RunResult, Timing

FASTER_ABOVE = 1.02
"""Lower bound of the interval that FASTER needs (DESIGN, section 5)."""
REVIEW_ABOVE = 10.0
"""A speed-up over the better baseline that somebody should look at (JUDGE.md, section 4)."""
LONGEST = 1000
"""Characters of a reason; a candidate chooses what its exceptions say."""


class Verdict(StrEnum):
    """What was found of a candidate."""

    NO_CODE = "NO_CODE"
    BUILD_FAILED = "BUILD_FAILED"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG = "WRONG"
    CHEATED = "CHEATED"
    NOT_AUTHORED = "NOT_AUTHORED"
    UNVERIFIED = "UNVERIFIED"
    CORRECT = "CORRECT"
    FASTER = "FASTER"


class Outcome(StrEnum):
    """How a pair ended without a candidate."""

    NOT_ADMITTED = "NOT_ADMITTED"
    NOT_COVERED = "NOT_COVERED"
    TOO_LARGE = "TOO_LARGE"
    UNSUPPORTED = "UNSUPPORTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict with its reason and the speed that goes with it."""

    verdict: Verdict
    reason: str
    needs_review: bool = False
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    gain_over_parent: float | None = None
    baseline: str | None = None


FAILED: dict[str, Verdict] = {
    "import_failed": Verdict.BUILD_FAILED,
    "crashed": Verdict.CRASHED,
    "timed_out": Verdict.TIMED_OUT,
    "out_of_memory": Verdict.OUT_OF_MEMORY,
    "bad_structure": Verdict.WRONG_SHAPE,
    "wrong": Verdict.WRONG,
    "input_changed": Verdict.CHEATED,
    "deferred": Verdict.CHEATED,
    "forged": Verdict.CHEATED,
}
"""By `RunStatus`; `ran` is absent."""


def judge(contract: Contract, build: BuildResult, run: RunResult | None) -> Judgement:
    """The verdict on a candidate that has source code."""
    found = _judgement(contract, build, run)
    return replace(found, reason=_plain(found.reason))


def _plain(text: str) -> str:
    r"""Foreign words as one line that no terminal obeys, cut at LONGEST.

    >>> _plain("wrong\x1b[2J at\n[0]")
    'wrong [2J at [0]'
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..."


def _judgement(contract: Contract, build: BuildResult, run: RunResult | None) -> Judgement:
    if not build.ok:
        return Judgement(verdict=Verdict.BUILD_FAILED, reason=build.detail)
    if run is None:
        reason = build.detail or "built; nothing here can execute it"
        return Judgement(verdict=Verdict.UNVERIFIED, reason=reason)
    if run.status in FAILED:
        return Judgement(verdict=FAILED[run.status], reason=run.detail)
    if (refusal := _policy(contract, run)) is not None:
        return Judgement(verdict=Verdict.NOT_AUTHORED, reason=refusal)
    return _speed(contract, run)


def _policy(contract: Contract, run: RunResult) -> str | None:
    """Why the library policy refuses the candidate; None if it does not."""
    listed = ", ".join(run.library_ops[:4])
    if contract.library == "allowed":
        return None
    if run.authored is False:
        return f"no kernel of its own reaches the output; ATen does the work ({listed})"
    if contract.library == "refused" and run.library_ops:
        return f"library compute beside its own kernel ({listed})"
    return None


def _speed(contract: Contract, run: RunResult) -> Judgement:
    notes = _notes(contract, run)
    if not run.timings:
        return Judgement(
            verdict=Verdict.CORRECT,
            reason="; ".join((_untimed(run), *notes)),
            needs_review=bool(notes),
        )
    mean = _geometric([t.ratio for t in run.timings])
    low, high = (_interval(run.timings, mean, side) for side in ("low", "high"))
    parents = [t.parent_ratio for t in run.timings if t.parent_ratio is not None]
    faster = low > FASTER_ABOVE
    baseline = " / ".join(dict.fromkeys(t.baseline for t in run.timings))
    return Judgement(
        verdict=Verdict.FASTER if faster else Verdict.CORRECT,
        reason="; ".join((_said(mean, low, high, baseline), *_reuse(run.timings), *notes)),
        needs_review=bool(notes) or mean > REVIEW_ABOVE,
        speedup=mean,
        low=low,
        high=high,
        gain_over_parent=_geometric(parents) if parents else None,
        baseline=baseline,
    )


def _untimed(run: RunResult) -> str:
    if run.execution == "emulated":
        return "right; emulated, so it has no time"
    return "right; not timed"


def _said(mean: float, low: float, high: float, baseline: str) -> str:
    return f"{mean:.2f}x over {baseline}, 95 % interval {low:.2f} to {high:.2f}"


def _reuse(timings: tuple[Timing, ...]) -> tuple[str, ...]:
    """What was gained by keeping memory, which is legal and no speed of the kernel."""
    share = _geometric([t.allocation for t in timings])
    return (f"memory that it reuses gives {share:.2f}x more",) if share > FASTER_ABOVE else ()


def _notes(contract: Contract, run: RunResult) -> tuple[str, ...]:
    """Reasons why somebody should look at a right candidate."""
    if contract.library == "allowed":
        return run.review
    hybrid = f"library compute beside its own kernel ({', '.join(run.library_ops[:4])})"
    untraced = "its operators could not be traced"
    return (
        *run.review,
        *([hybrid] if run.library_ops and run.authored else []),
        *([untraced] if run.authored is None else []),
    )


def _geometric(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _interval(timings: tuple[Timing, ...], mean: float, side: str) -> float:
    """Bound of the geometric mean: half widths of independent shapes add in quadrature."""
    halves = [math.log(getattr(t, side) / t.ratio) for t in timings]
    half = math.sqrt(sum(h * h for h in halves)) / len(halves)
    return mean * math.exp(-half if side == "low" else half)
