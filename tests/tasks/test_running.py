"""A campaign's pairs: two at a time, each on its own, told to whoever listens."""

import asyncio
import io

import pytest

from data.errors import MachineError
from data.records import Contract, Operator, Pair, Settings
from data.verdict import Verdict
from tasks.campaign import Campaign, PairResult
from tasks.crew import Crew
from tasks.progress import listening
from tasks.running import run_all
from tasks.served import PARALLEL
from tasks.terminal import Terminal
from tests.data.samples import CPU, confirmed, plain


def campaign(*names: str) -> Campaign:
    return Campaign(
        run_id="run",
        epoch="default",
        runs="runs",
        operators=tuple(Operator(name=n, source=f"# {n}") for n in names),
        devices=(CPU,),
        contract=Contract(),
        settings=Settings(),
        crew=Crew(),
    )


def result(pair: Pair) -> PairResult:
    return PairResult(
        operator=pair.operator.name,
        device=pair.device.name,
        verdict=Verdict.FASTER.value,
        reason="",
        baseline="eager",
        speedup=1.5,
        speedup_low=1.4,
        speedup_high=1.6,
        needs_review=False,
        steps=3,
        new_steps=1,
        seconds=1.0,
    )


async def test_a_failed_pair_takes_no_other_along() -> None:
    """The others end first; then the failure is named, and what to do."""
    done: list[str] = []

    async def one(pair: Pair) -> PairResult:
        if pair.operator.name == "b":
            raise MachineError("no disk")
        await asyncio.sleep(0.01)
        done.append(pair.operator.name)
        return result(pair)

    with pytest.raises(MachineError, match=r"1 of 3 pairs failed; b@cpu: no disk; the same"):
        await run_all(campaign("a", "b", "c"), one)
    assert done == ["a", "c"]


async def test_a_swapped_result_is_noticed() -> None:
    """A result of another pair is a fault, not a row in the table."""
    pairs = {p.operator.name: p for p in campaign("a", "b").pairs()}
    other = {"a": "b", "b": "a"}

    async def one(pair: Pair) -> PairResult:
        return result(pairs[other[pair.operator.name]])

    with pytest.raises(MachineError, match="the result of a@cpu came back as b@cpu"):
        await run_all(campaign("a", "b"), one)


async def test_no_more_pairs_at_a_time_than_the_database_bears() -> None:
    """And results come in the campaign's order, whichever ends first."""
    running: list[str] = []
    most: list[int] = []

    async def one(pair: Pair) -> PairResult:
        running.append(pair.name)
        most.append(len(running))
        await asyncio.sleep(0.02 if pair.operator.name == "a" else 0.001)
        running.remove(pair.name)
        return result(pair)

    results = await run_all(campaign(*"abcde"), one)
    assert max(most) == PARALLEL
    assert [r.operator for r in results] == list("abcde")


async def test_the_terminal_is_told_in_plain_lines() -> None:
    """Where there is no terminal each step is a line; steps on record are not told again."""
    screen = io.StringIO()
    terminal = Terminal(total=1, stream=screen)
    now = "2999-01-01T00:00:00+00:00"

    async def one(pair: Pair) -> PairResult:
        terminal.stepped(plain(0, operator=pair.operator))
        terminal.stepped(confirmed(1, 1.5, ended_at=now, operator=pair.operator))
        return result(pair)

    with terminal, listening(terminal):
        await run_all(campaign("relu"), one)
    lines = screen.getvalue().splitlines()
    assert lines == [
        "relu@cpu: started",
        "relu@cpu: step 1 confirm a: FASTER 1.50x [1.47, 1.53], best 1.50x",
        "[1/1] relu@cpu: FASTER 1.50x [1.40, 1.60]",
    ]
    assert terminal.new_steps == 1
