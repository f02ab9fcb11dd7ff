"""A campaign as a Prefect flow: one subflow a pair, some at a time."""

import logging
from functools import partial
from pathlib import Path

from prefect import flow, tags, task
from prefect.artifacts import acreate_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from data.errors import MachineError
from data.records import Pair
from flows.heard import patiently, told
from flows.pair import pair
from tasks import pages
from tasks.campaign import Campaign, PairResult, campaign_file, read_campaign
from tasks.running import run_all
from tasks.terminal import MACHINES

MOST_STARTS = 10
"""Of one run, by the automation `kforge-crashed`."""


def _named() -> str:
    given = flow_run.parameters
    campaign = read_campaign(campaign_file(Path(given["runs"]), given["run_id"]))
    operators = [o.name for o in campaign.operators]
    return pages.title(operators, [d.name for d in campaign.devices], campaign.epoch)


@flow(name="port", flow_run_name=_named, persist_result=False)
async def port(runs: str, run_id: str, epoch: str) -> list[PairResult]:
    """Ports all pairs of the campaign stored under RUNS/campaigns; goes on from the ledger.

    MachineError at the end when a pair failed.
    """
    campaign = read_campaign(campaign_file(Path(runs), run_id))
    assert campaign.epoch == epoch
    return await ported(campaign)


async def ported(campaign: Campaign) -> list[PairResult]:
    """The campaign's pairs as subflows of the flow that runs, then the table of all.

    A pair is entered again when the server failed under it: the ledger knows what it had done. The
    pairs are never gathered as flows: a retried parent would hand out their results swapped
    (PREFECT.md, section 2).
    """
    done: list[PairResult] = []

    async def one(subject: Pair) -> PairResult:
        device = subject.device
        marks = {device.name, device.vendor, subject.operator.family or "unknown", campaign.run_id}
        with tags(*sorted(marks)):
            enter = partial(start, campaign.runs, campaign.run_id, subject.operator.name)
            result = await patiently(lambda: enter(device.name))
        done.append(result)
        return result

    _give_up_at(MOST_STARTS)
    MACHINES.setLevel(logging.INFO)  # who holds a device, what was restarted: for the run's page
    try:
        return list(await run_all(campaign, one))
    finally:
        rows = pages.result_rows(done)
        said = "; ".join(filter(None, (pages.summary(done), campaign.meter.left())))
        await told(acreate_table_artifact(rows, "speedups", said))


def _give_up_at(starts: int) -> None:
    """MachineError for a run that crashed again and again: something kills it, not chance."""
    if (count := flow_run.run_count or 0) > starts:
        raise MachineError(
            f"started {count} times and never came to its end; look for what kills it in the"
            " worker's log, then start a new run: the ledger goes on where this one stopped"
        )


@task(
    name="start", task_run_name="{operator}@{device}", cache_policy=NO_CACHE, persist_result=False
)
async def start(runs: str, run_id: str, operator: str, device: str) -> PairResult:
    """Enters the pair's flow. Nothing is cached: the ledger knows what has been done."""
    return await pair(runs, run_id, operator, device)
