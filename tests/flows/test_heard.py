"""Prefect second: a server that is away stops no work, and work that fails is not repeated."""

import httpx
import pytest

from data.errors import MachineError
from flows.heard import patiently, told

AWAY = httpx.ConnectError("refused")


async def test_a_picture_that_is_not_taken_stops_nothing() -> None:
    """An artifact is lost, the pair goes on."""

    async def call() -> str:
        raise AWAY

    assert await told(call()) is None


async def test_a_pair_is_entered_again_when_the_server_was_away() -> None:
    """Twice refused, then taken; the pauses grow."""
    waited: list[float] = []
    answers: list[Exception | str] = [AWAY, AWAY, "done"]

    async def enter() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    assert await patiently(enter, sleep=sleep) == "done"
    assert waited == [2.0, 10.0]


async def test_a_server_that_stays_away_is_the_worlds_fault() -> None:
    """One line, after the last pause."""

    async def enter() -> str:
        raise AWAY

    async def sleep(_: float) -> None:
        return

    with pytest.raises(MachineError, match="the Prefect server failed: ConnectError: refused"):
        await patiently(enter, sleep=sleep)


async def test_a_pair_that_fails_by_itself_is_not_entered_again() -> None:
    """Machines have their own retries; a second entry would pay them twice."""
    entered: list[int] = []

    async def enter() -> str:
        entered.append(1)
        raise MachineError("no disk")

    with pytest.raises(MachineError, match="no disk"):
        await patiently(enter)
    assert entered == [1]
