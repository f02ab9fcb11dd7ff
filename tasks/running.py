"""All pairs of a campaign, some at a time; a pair that fails takes no other along."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from agents.strategy import next_move
from data.errors import KForgeError, LimitError, MachineError
from data.records import Pair
from data.store import Ledger
from targets.machines.spool import SpoolMachine, Waiting
from tasks import spooled
from tasks.campaign import Campaign, PairResult, end, run_pair
from tasks.machines import close_machines, machine_for
from tasks.progress import listener

SHOWN = 20
"""Names of pairs in a message."""

One = Callable[[Pair], Awaitable[PairResult]]


async def run_all(campaign: Campaign, one: One) -> tuple[PairResult, ...]:
    """What the pairs report, in the campaign's order; `one` ports a single pair.

    MachineError that names the pairs which failed, raised when all the others have ended.
    """
    slots = asyncio.Semaphore(campaign.parallel)
    pairs = campaign.pairs()
    try:
        post_jobs(campaign)
        done = await asyncio.gather(
            *(_guarded(p, one, slots) for p in pairs), return_exceptions=True
        )
    finally:
        close_machines()
    failed = [(p, e) for p, e in zip(pairs, done, strict=True) if isinstance(e, BaseException)]
    if failed and all(isinstance(e, Waiting) for _, e in failed):
        raise Waiting(f"{len(failed)} of {len(pairs)} pairs wait: {failed[0][1]}")
    if failed and all(isinstance(e, LimitError) for _, e in failed):
        raise LimitError(_skipped(failed, len(pairs))) from failed[0][1]
    if failed:
        raise MachineError(_failures(failed, len(pairs))) from failed[0][1]
    end(campaign)
    return tuple(r for r in done if isinstance(r, PairResult))


async def run_locally(campaign: Campaign) -> tuple[PairResult, ...]:
    """All pairs in this process, without Prefect."""

    async def one(pair: Pair) -> PairResult:
        return await run_pair(campaign, pair, on_step=listener().stepped)

    return await run_all(campaign, one)


async def _guarded(pair: Pair, one: One, slots: asyncio.Semaphore) -> PairResult:
    async with slots:
        listener().started(pair)
        try:
            result = _checked(pair, await one(pair))
        except Exception as error:
            listener().failed(pair, error)
            raise
        listener().ended(result)
        return result


def _checked(pair: Pair, result: PairResult) -> PairResult:
    """The result, if it is this pair's: a retried Prefect parent once swapped them."""
    if (result.operator, result.device) != (pair.operator.name, pair.device.name):
        raise RuntimeError(
            f"the result of {pair.name} came back as {result.operator}@{result.device}"
        )
    return result


def _failures(failed: list[tuple[Pair, BaseException]], total: int) -> str:
    first, error = failed[0]
    others = f" (also: {', '.join(p.name for p, _ in failed[1:])})" if len(failed) > 1 else ""
    return (
        f"{len(failed)} of {total} pairs failed; {first.name}: {said(error)}{others};"
        " the same command goes on where they stopped"
    )


def _skipped(skipped: list[tuple[Pair, BaseException]], total: int) -> str:
    names = [p.name for p, _ in skipped]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (
        f"{said(skipped[0][1])}: {total - len(names)} of {total} pairs ended;"
        f" not done: {', '.join(names[:SHOWN])}{more};"
        " the same command, or the next night, goes on where they stopped"
    )


def said(error: BaseException) -> str:
    """The error in one line."""
    text = " ".join(str(error).split()) or "no message"
    return text if isinstance(error, KForgeError) else f"{type(error).__name__}: {text}"


def post_jobs(campaign: Campaign) -> None:
    """Puts the jobs of all pairs that a spool has to do there at once, so that none waits for us.

    MachineError when a folder does not take them.
    """
    if not campaign.crew.keyless:
        return
    ledger = Ledger(Path(campaign.runs))
    for pair in campaign.pairs():
        if spooled.behind_spool(pair):
            known = ledger.history(pair.run_id, pair.operator.hash, pair.device.name)
            machine = machine_for(pair.device, Path(campaign.runs))
            if isinstance(machine, SpoolMachine) and next_move(known, pair.settings) is not None:
                machine.pair(pair)
