"""Who is told how a campaign goes: the terminal when there is one, else nobody.

Flow parameters are names and numbers only, so that whoever starts a campaign in this process
hands its listener over by context, not by argument.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from data.records import Iteration, Pair
from tasks.campaign import PairResult


class Listener(Protocol):
    """What happens to the pairs of a campaign, in order for each pair."""

    def started(self, pair: Pair) -> None: ...
    def stepped(self, iteration: Iteration) -> None: ...
    def ended(self, result: PairResult) -> None: ...
    def failed(self, pair: Pair, error: BaseException) -> None: ...


class _Nobody:
    """Listens to nothing: a worker's terminal is the Prefect UI."""

    def started(self, pair: Pair) -> None: ...
    def stepped(self, iteration: Iteration) -> None: ...
    def ended(self, result: PairResult) -> None: ...
    def failed(self, pair: Pair, error: BaseException) -> None: ...


_LISTENER: ContextVar[Listener] = ContextVar("kforge_listener", default=_Nobody())  # noqa: B039


def listener() -> Listener:
    """The listener of this context."""
    return _LISTENER.get()


@contextmanager
def listening(to: Listener) -> Iterator[None]:
    """Has `to` told about every campaign that is run inside the block."""
    token = _LISTENER.set(to)
    try:
        yield
    finally:
        _LISTENER.reset(token)
