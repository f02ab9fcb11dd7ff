"""Work on a device wherever it is: on the least loaded machine, on another one when that dies."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from data.errors import MachineError
from data.records import Device
from targets.machines import inventory
from targets.machines.remote import RemoteMachine
from targets.machines.slurm import SlurmMachine
from tasks import soundness
from tasks.judgement import Bench, Placed, Rule, Ruling
from tasks.machines import machine_for
from tasks.placement import Placement, place
from tasks.retry import patiently

T = TypeVar("T")

PLACEMENT = Placement()
_LOG = logging.getLogger("kforge.machines")
_proving: dict[object, asyncio.Lock] = {}


async def somewhere(device: Device, runs: Path, work: Callable[[Device], Awaitable[T]]) -> T:
    """What `work` returns on a machine that has the device; MachineError when none is left.

    A remote machine must judge a known kernel right before its first pair.
    """
    choices = inventory.places(device)
    while True:
        with PLACEMENT.taken(choices) as chosen:
            try:
                await _proven(chosen, runs)
                return await work(chosen)
            except MachineError as error:
                if len(choices) == 1:
                    raise
                _LOG.warning("%s is left out: %s", chosen.machine, error)
                PLACEMENT.leave_out(chosen, str(error))


def benches(device: Device, runs: Path) -> Placed:
    """Rulings on any machine that has the device, as `somewhere`."""
    known: dict[object, Bench] = {}

    async def placed(rule: Rule) -> Ruling:
        async def there(chosen: Device) -> Ruling:
            fresh = Bench(machine=machine_for(chosen, runs), device=chosen)
            return await rule(known.setdefault(place(chosen), fresh))

        return await somewhere(device, runs, there)

    return placed


async def _proven(device: Device, runs: Path) -> None:
    """One check a place, however many pairs wait for it."""
    machine = machine_for(device, runs)
    key = (id(asyncio.get_running_loop()), place(device))
    async with _proving.setdefault(key, asyncio.Lock()):
        if (
            isinstance(machine, RemoteMachine | SlurmMachine)
            and place(device) not in PLACEMENT.sound
        ):
            await patiently(lambda: soundness.check(machine, device))
            PLACEMENT.sound.add(place(device))
