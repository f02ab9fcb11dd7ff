"""Jobs that wait for a device on its own host: one after the other, done once, for somebody."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from data.errors import MachineError
from data.records import Device
from targets.machines import resident
from targets.machines.remote import RemoteMachine
from tests.targets.machines.near import Near, near

CPU = Device(name="cpu", target="cpu", vendor="cpu", arch="any")
NOTE = "echo begin >> $0; sleep 0.1; echo end >> $0"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Near]:
    async with near(tmp_path / "host") as made:
        yield made


async def turn(machine: RemoteMachine, *words: str, deadline_s: float = 30.0) -> int:
    """The status of a command that had the device for itself."""
    async with machine.turn(CPU):
        return (await machine.run(words, deadline_s)).code


async def ask(machine: RemoteMachine) -> Any:
    """The answer to the same question each time."""
    async with machine.turn(CPU):
        return await machine.judge("measure", {"device": CPU, "n": 1}, 30.0)


async def test_jobs_have_the_device_one_after_the_other(host: Near, tmp_path: Path) -> None:
    """Those of two controllers too: none begins before another has ended."""
    machines, log = (host.controller(), host.controller()), str(tmp_path / "log")
    await asyncio.gather(*(turn(machines[n % 2], "sh", "-c", NOTE, log) for n in range(6)))
    assert Path(log).read_text().split() == ["begin", "end"] * 6


async def test_waiting_counts_towards_no_deadline(host: Near) -> None:
    """A job that waits longer than it may run still runs; one that runs too long is ended."""
    first, second = host.controller(), host.controller()
    async with first.lease(CPU):
        waiting = asyncio.create_task(turn(second, "sleep", "0.1", deadline_s=0.6))
        await asyncio.sleep(1.2)
        assert not waiting.done()
    assert await waiting == 0
    assert await turn(second, "sleep", "20", deadline_s=0.3) == -9


async def test_who_is_cancelled_while_waiting_leaves_nothing(host: Near, tmp_path: Path) -> None:
    """The job never begins, and the next one has the device at once."""
    first, second = host.controller(), host.controller()
    async with first.lease(CPU):
        waiting = asyncio.create_task(turn(second, "touch", str(tmp_path / "begun")))
        await asyncio.sleep(0.3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await asyncio.wait_for(turn(first, "true"), 5) == 0
    assert not (tmp_path / "begun").exists()


async def test_a_job_of_a_controller_that_is_gone_is_not_begun(
    host: Near, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device is not used for somebody who went long before."""
    monkeypatch.setattr(resident, "ABSENT_S", 0.2)
    first, second = host.controller(), host.controller()
    async with first.lease(CPU):
        waiting = asyncio.create_task(turn(second, "touch", str(tmp_path / "begun")))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(second.close)
        with pytest.raises(MachineError):
            await waiting
        await asyncio.sleep(0.5)
    assert await asyncio.wait_for(turn(first, "true"), 5) == 0
    assert not (tmp_path / "begun").exists()


async def test_a_controller_that_comes_back_too_late_has_its_job_done_anew(
    host: Near, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the job was passed over meanwhile is not told to who asks for it afterwards."""
    monkeypatch.setattr(resident, "ABSENT_S", 0.2)
    async with host.controller().lease(CPU):
        first = host.controller()
        lost = asyncio.create_task(ask(first))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(first.close)
        with pytest.raises(MachineError):
            await lost
        await asyncio.sleep(0.5)
    assert await turn(host.controller(), "true") == 0
    assert await ask(host.controller()) == 1


async def test_a_controller_that_starts_again_finds_its_waiting_job(host: Near) -> None:
    """It is the same job, in its old place, and done once."""
    first, again = host.controller(), host.controller()

    async with host.controller().lease(CPU):
        lost = asyncio.create_task(ask(first))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(first.close)
        with pytest.raises(MachineError):
            await lost
        found = asyncio.create_task(ask(again))
        await asyncio.sleep(0.3)
        assert host.host.asked == 0
    assert await found == 1
    assert host.host.asked == 1
