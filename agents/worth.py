"""What one more try is expected to bring: where the next call of a pair should go.

A try is a first candidate or a piece of advice, with all that it took to mend what came of it. Its
lift is the logarithm of best speed after over best speed before; a failure lifts nothing.
"""

import math
import statistics
from dataclasses import dataclass

from data.records import Iteration, Mode

History = tuple[Iteration, ...]

SPREAD = 0.4
"""Standard deviation of the logarithms of an operator's first speeds, before two are known. A
prior, not fitted, and ADVICE_LIFT too: docs/loop.md."""
ADVICE_LIFT = 0.07
ADVICE_CALLS = 2
"""Analyst and generator."""
FORGETTING = 1 / 3
"""Weight of the latest advice: it brings less and less, and what it brought first is no promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What one more try of a kind is expected to bring, and to cost."""

    lift: float
    calls: float
    """Of models; what offline agents do counts as one."""

    @property
    def per_call(self) -> float:
        return self.lift / self.calls


def first_worth(history: History) -> Worth:
    """Of one more first candidate: the best of n + 1 draws exceeds that of n by half a spread / n.

    (Normal draws: 0.56, 0.28, 0.18, 0.13, 0.10 spreads for n = 1 to 5.)
    """
    tries = [t for t in _tries(history) if t[0].move.mode is not Mode.OPTIMISE]
    speeds = [next((r.speedup for r in t if r.right and r.speedup), None) for t in tries]
    logs = [math.log(speed) for speed in speeds if speed]
    if not logs:
        return Worth(lift=SPREAD, calls=1)
    squares = SPREAD**2 + statistics.pvariance(logs) * len(logs)
    return Worth(lift=math.sqrt(squares / len(logs)) / 2 / len(logs), calls=_mean_calls(tries))


def advice_worth(history: History, *, analyst: bool) -> Worth:
    """Of one more advice: the running average of its lifts; `analyst`: it takes a call itself."""
    best, lift, tries = None, ADVICE_LIFT, []
    for rows in _tries(history):
        reached = max((r.speedup for r in rows if r.right and r.speedup), default=None)
        if rows[0].move.mode is Mode.OPTIMISE and best is not None:
            tries.append(rows)
            lift += FORGETTING * (math.log(max(best, reached or best) / best) - lift)
        best = max(filter(None, (best, reached)), default=None)
    asked = analyst and any(i.calls for i in history)
    return Worth(lift=lift, calls=_mean_calls(tries) if tries else ADVICE_CALLS if asked else 1)


def _mean_calls(tries: list[History]) -> float:
    return statistics.mean(sum(max(1, len(r.calls)) for r in rows) for rows in tries)


def _tries(history: History) -> list[History]:
    """In order; a mend belongs to the try before it."""
    groups: list[History] = []
    for row in history:
        if row.move.mode is Mode.FIX and groups:
            groups[-1] = (*groups[-1], row)
        elif row.move.mode is not Mode.CONFIRM:
            groups.append((row,))
    return groups
