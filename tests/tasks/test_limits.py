"""A campaign stops at its limits, says what it left out, and goes on another time."""

from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import LimitError, MachineError
from data.records import Pair
from data.store import Ledger
from tasks.campaign import Campaign, PairResult, campaign_file, ended, store_campaign
from tasks.limits import Limits, Meter, meter
from tasks.running import run_all
from tests.data.samples import call, confirmed, key
from tests.tasks.test_running import campaign, result


def test_device_time_and_tokens_add_up() -> None:
    """Each step counts; the next may begin until the limit is reached."""
    taken = Meter(limits=Limits(device_minutes=2.0, tokens=1000))
    row = confirmed(0, 1.5, calls=(call(),))
    assert row.run is not None
    row = replace(row, run=replace(row.run, seconds=60.0))
    taken.check()
    taken.count(row)
    taken.check()
    assert taken.left() == "left: 1 device minutes, 850 tokens"
    taken.count(row)
    with pytest.raises(LimitError, match=r"device minutes of the campaign are used up \(2 of 2\)"):
        taken.check()


def test_hours_begin_with_the_process() -> None:
    """The clock is of this start; what an earlier night took does not count."""
    now = [0.0]
    taken = Meter(limits=Limits(hours=1.0), clock=lambda: now[0])
    taken.check()
    now[0] = 3600.0
    with pytest.raises(LimitError, match="hours of the campaign"):
        taken.check()


def test_what_is_on_record_has_been_taken(tmp_path: Path) -> None:
    """A campaign that goes on has less left; another run does not count."""
    ledger = Ledger(tmp_path)
    row = confirmed(0, 1.5)
    assert row.run is not None
    ledger.append(replace(row, run=replace(row.run, seconds=90.0)))
    ledger.append_call(key(0), call())
    limits = Limits(device_minutes=10.0, tokens=1000)
    assert meter(tmp_path, "run", limits).left() == "left: 8.5 device minutes, 850 tokens"
    assert meter(tmp_path, "other", limits).left() == "left: 10 device minutes, 1000 tokens"


def test_no_limits_cost_nothing(tmp_path: Path) -> None:
    """The ledger is not even looked at."""
    taken = meter(tmp_path / "nowhere", "run", Limits())
    taken.check()
    assert taken.left() == ""


async def test_what_was_not_done_is_named(tmp_path: Path) -> None:
    """Pairs that ended count, the others are listed, and the campaign is not at its end."""
    made = replace(campaign("a", "b", "c"), runs=str(tmp_path))
    store_campaign(made)

    async def one(pair: Pair) -> PairResult:
        if pair.operator.name != "a":
            raise LimitError("hours of the campaign are used up (2 of 2)")
        return result(pair)

    with pytest.raises(LimitError, match=r"1 of 3 pairs ended; not done: b@cpu, c@cpu; the same"):
        await run_all(made, one)
    assert not ended(made)


async def test_a_fault_of_the_world_is_not_hidden_by_a_limit() -> None:
    """Both in one night: the fault is told, since somebody has to look."""

    async def one(pair: Pair) -> PairResult:
        if pair.operator.name == "a":
            raise MachineError("no disk")
        raise LimitError("hours of the campaign are used up (2 of 2)")

    with pytest.raises(MachineError, match="a@cpu: no disk"):
        await run_all(campaign("a", "b"), one)


def test_limits_are_no_part_of_the_identity(tmp_path: Path) -> None:
    """The same campaign with more time is the same campaign: it goes on."""
    from tasks.campaign import identify

    made = campaign("a")
    longer: Campaign = replace(made, limits=Limits(hours=5.0))
    assert identify(longer).run_id == identify(made).run_id
    assert campaign_file(tmp_path, identify(made).run_id).suffix == ".json"
