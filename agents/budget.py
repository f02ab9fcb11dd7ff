"""Money and calls that may still be spent, reserved before a call is made."""

import math
import threading
from dataclasses import dataclass

from data.errors import BudgetError

PAIR_CALLS = 40
"""Calls for one (operator, device); ten rounds of both agents take about 20 (LLM.md, section 7)."""
PAIR_USD = 2.0
"""Dollars for one (operator, device); published loops took 0.30 to 5 (LLM.md, section 7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a budget has given out: finished calls, and calls in flight at their worst case."""

    calls: int
    usd: float
    """Known costs only: a call without a known price adds nothing."""


class Budget:
    """Limits on calls and dollars; safe to share between pairs that run in parallel.

    A call is reserved at its worst-case price before it is made and settled afterwards, so that
    calls in flight count. `within` is the budget of the whole run: both must agree.

    >>> run = Budget(calls=3, usd=None)
    >>> pair = Budget(calls=1, usd=None, within=run)
    >>> pair.reserve(None).settle(None)
    >>> pair.reserve(None)
    Traceback (most recent call last):
        ...
    data.errors.BudgetError: the budget of 1 calls is spent; raise it or finish here
    """

    def __init__(
        self, *, calls: int | None, usd: float | None, within: "Budget | None" = None
    ) -> None:
        self._limit_calls = calls
        self._limit_usd = usd
        self._within = within
        self._lock = threading.Lock()
        self._calls = 0
        self._usd = 0.0

    @property
    def spent(self) -> Spent:
        with self._lock:
            return Spent(calls=self._calls, usd=self._usd)

    def charge(self, cost_usd: float | None) -> None:
        """Count a call that is on record already, as after a resume; here only, not in the run."""
        self._take(1, cost_usd or 0.0)

    def reserve(self, worst_usd: float | None) -> "Hold":
        """Room for one call that costs `worst_usd` at most (None: no price known).

        BudgetError when the calls or the dollars left do not cover it; nothing is taken then.
        """
        worst = worst_usd or 0.0
        with self._lock:
            self._check(worst)
            self._calls += 1
            self._usd += worst
        try:
            outer = self._within.reserve(worst_usd) if self._within else None
        except BudgetError:
            self._take(-1, -worst)
            raise
        return Hold(self, worst, outer)

    def _check(self, worst: float) -> None:
        if self._limit_calls is not None and self._calls >= self._limit_calls:
            raise BudgetError(
                f"the budget of {self._limit_calls} calls is spent; raise it or finish here"
            )
        if self._limit_usd is None or worst == 0.0:
            return
        left = self._limit_usd - self._usd
        if worst > left and not math.isclose(worst, left):
            raise BudgetError(
                f"the next call could cost {worst:.4f} USD, {max(left, 0.0):.4f} of "
                f"{self._limit_usd:.2f} USD are left; raise the budget or finish here"
            )

    def _take(self, calls: int, usd: float) -> None:
        with self._lock:
            self._calls += calls
            self._usd += usd


class Hold:
    """One reservation: settled once, at what the call really cost."""

    def __init__(self, budget: Budget, worst: float, outer: "Hold | None") -> None:
        self._budget = budget
        self._worst = worst
        self._outer = outer

    def settle(self, cost_usd: float | None) -> None:
        """The call answered. A cost that stayed unknown is counted at its worst case."""
        if cost_usd is not None:
            self._budget._take(0, cost_usd - self._worst)  # noqa: SLF001 - one noun with Budget
        if self._outer:
            self._outer.settle(cost_usd)
