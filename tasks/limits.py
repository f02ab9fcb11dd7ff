"""What a campaign may take: wall clock, device time, tokens; steps stop when it is used up.

What was done before, also by a campaign that was cut, is read from the ledger; money has limits of
its own (`tasks/crew.py`). A step under way is finished: nothing that was paid is thrown away.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from data import views
from data.errors import LimitError
from data.records import Iteration


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """None is no limit."""

    hours: float | None = None
    """Of wall clock, anew each time that the campaign is started."""
    device_minutes: float | None = None
    """Of checking and timing, all steps of the run."""
    tokens: int | None = None
    """Of all calls of the run, prompts and completions."""


@dataclass(kw_only=True)
class Meter:
    """What the pairs of one campaign have taken in this process and before."""

    limits: Limits
    device_minutes: float = 0.0
    tokens: int = 0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._began = self.clock()

    def check(self) -> None:
        """LimitError when something is used up: no step may begin."""
        for what, taken, limit in self._all():
            if limit is not None and taken >= limit:
                raise LimitError(f"{what} of the campaign are used up ({taken:g} of {limit:g})")

    def count(self, iteration: Iteration) -> None:
        """Adds what a step took."""
        self.device_minutes += (iteration.run.seconds if iteration.run else 0.0) / 60.0
        self.tokens += sum(
            (c.prompt_tokens or 0) + (c.completion_tokens or 0) for c in iteration.calls
        )

    def left(self) -> str:
        """What may still be taken, in words; empty without limits."""
        told = [
            f"{max(0.0, limit - taken):.4g} {what}"
            for what, taken, limit in self._all()
            if limit is not None
        ]
        return f"left: {', '.join(told)}" if told else ""

    def _all(self) -> tuple[tuple[str, float, float | None], ...]:
        hours = (self.clock() - self._began) / 3600.0
        return (
            ("hours", hours, self.limits.hours),
            ("device minutes", self.device_minutes, self.limits.device_minutes),
            ("tokens", self.tokens, self.limits.tokens),
        )


@cache
def meter(runs: Path, run_id: str, limits: Limits) -> Meter:
    """The one meter of a campaign in this process, with what is on record of its run."""
    if limits == Limits():
        return Meter(limits=limits)
    rows = views.query(runs, views.question("taken")).to_pylist()
    before = next((r for r in rows if r["run_id"] == run_id), None)
    if before is None:
        return Meter(limits=limits)
    return Meter(limits=limits, device_minutes=before["device_minutes"], tokens=before["tokens"])
