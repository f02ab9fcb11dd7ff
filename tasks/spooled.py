"""Pairs whose device sits behind a spool: the whole loop runs there, its rows are imported here."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from data.records import Iteration, Pair
from data.store import Ledger
from targets.machines import inventory
from targets.machines.spool import LOOK_S, SpoolMachine
from targets.remote.jobs import Job
from targets.remote.spool import Spool

History = tuple[Iteration, ...]
OnStep = Callable[[Iteration], None]

_LOG = logging.getLogger("kforge.spool")


def behind_spool(pair: Pair) -> bool:
    """Whether the pair's device is reached through a folder only."""
    return pair.device.machine in inventory.spools()


async def ported(machine: SpoolMachine, pair: Pair, ledger: Ledger, on_step: OnStep) -> History:
    """The pair's steps when all have come back, each put on record when it does.

    Waiting when nobody works there; what came back until then is on record.
    """
    job = machine.pair(pair)
    while True:
        for step in imported(machine.spool, job, ledger):
            on_step(step)
        if machine.spool.ended(job):
            return ledger.history(pair.run_id, pair.operator.hash, pair.device.name)
        machine.check()
        await asyncio.sleep(LOOK_S)


def imported(spool: Spool, job: Job, ledger: Ledger) -> History:
    """The steps that were not on record yet, put there; what is refused is said."""
    pair = job.pair
    if pair is None:
        return ()
    steps = [row.iteration for row in spool.rows(job) if row.iteration is not None]
    for line in spool.refusals():
        _LOG.warning("%s", line)
    known = {i.move.step for i in ledger.history(pair.run_id, pair.operator.hash, pair.device.name)}
    new = tuple(step for step in steps if step.move.step not in known)
    for step in new:
        ledger.append(step)
    return new


def spools(into: Path | None) -> list[Spool]:
    """The spool that was named, else all that `devices.toml` knows."""
    if into is not None:
        return [Spool(into)]
    return [Spool(entry.place) for entry in inventory.spools().values()]
