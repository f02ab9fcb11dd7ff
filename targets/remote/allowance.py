"""The time that a child may take: only what the judge waits for it counts."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

OVERTIME_S = 40.0
"""Wall time that a slow judge may add, below the minute that its caller adds to a deadline."""


class Allowance:
    """Seconds for all children of one kind together."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._waited = seconds, 0.0
        self._over = time.monotonic() + seconds + OVERTIME_S

    @property
    def left_s(self) -> float:
        return min(self._seconds - self._waited, self._over - time.monotonic())

    @property
    def wasted(self) -> bool:
        """Whether time is up although the children did not use it: the judge is too slow."""
        return time.monotonic() >= self._over and self._waited < 0.9 * self._seconds

    def spend(self, seconds: float) -> None:
        """The judge waited for so long."""
        self._waited += seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The time inside is spent, however it ends."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.spend(time.monotonic() - began)
