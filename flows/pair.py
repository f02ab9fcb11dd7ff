"""One pair as a Prefect flow: a task run for each iteration, artifacts for people."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

from prefect import flow, task
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

import agents.loop
from agents.loop import History, Iterate, Stages
from data.records import Admission, Iteration, Move, Pair
from flows.heard import told
from tasks import pages, pictures
from tasks.campaign import PairResult, campaign_file, read_campaign, run_pair
from tasks.progress import listener
from tasks.slots import slot

FINE_PAIRS = 1000
"""Campaigns above have no task run a step and no bar: 30 task runs/s are all that one server
records (PREFECT.md, section 1), and its list of a run is slow above 2,000."""
SHOWN_EVERY_S = 10.0
"""A move of the bar costs the server 10 to 20 ms: steps of a second would cost it a tenth of a core
for each pair in work."""


@flow(name="pair", flow_run_name="{operator}@{device}", persist_result=False)
async def pair(runs: str, run_id: str, operator: str, device: str) -> PairResult:
    """Ports one pair of the campaign stored under RUNS/campaigns; goes on from the ledger."""
    campaign = read_campaign(campaign_file(Path(runs), run_id))
    subject = campaign.named(operator, device)
    fine = len(campaign.operators) * len(campaign.devices) <= FINE_PAIRS
    bar = await _bar(subject.name) if fine else None
    rows: list[Iteration] = []

    def stepped(iteration: Iteration) -> None:
        rows.append(iteration)
        listener().stepped(iteration)

    iterate = _in_tasks(bar) if fine else None
    async with slot(device):
        result = await run_pair(campaign, subject, iterate=iterate, on_step=stepped)
    await _publish(subject.name, bar, rows, result)
    return result


@task(name="step", cache_policy=NO_CACHE, persist_result=False)
async def step(work: Callable[[], Awaitable[Iteration | None]]) -> Iteration | None:
    """One iteration. It travels as a call, so that Prefect need not walk through the history."""
    return await work()


def _in_tasks(bar: UUID | None) -> Iterate:
    """The loop's step as a task run of its own, followed now and then by a move of the bar."""
    shown_s = -SHOWN_EVERY_S

    async def iterate(
        subject: Pair, admission: Admission, stages: Stages, move: Move, history: History
    ) -> Iteration | None:
        async def work() -> Iteration | None:
            done = await agents.loop.step(subject, admission, stages, move, history)
            if done is not None and not done.right:  # the others stand in the table
                get_run_logger().info(pages.step_log(done))
            return done

        run_name = f"{move.step} {move.mode} {move.lineage}".strip()
        iteration = await step.with_options(task_run_name=run_name)(work)
        nonlocal shown_s
        if iteration is not None and time.monotonic() - shown_s >= SHOWN_EVERY_S:
            await _advance(bar, (*history, iteration), subject.settings.steps)
            shown_s = time.monotonic()
        return iteration

    return iterate


async def _bar(name: str) -> UUID | None:
    key = f"progress-{pages.slug(name)}"
    return await told(acreate_progress_artifact(0.0, key, f"{name}: starting"))


async def _advance(bar: UUID | None, history: History, steps: int) -> None:
    latest, best = history[-1], pages.best(history)
    said = f"step {latest.move.step} {latest.move.mode}: {latest.verdict.value}"
    so_far = f"; best so far {pages.speed(best)}" if best else ""
    await _moved(bar, pages.progress(history, steps), f"{said}{so_far}")


async def _moved(bar: UUID | None, percent: float, said: str) -> None:
    if bar is not None:
        await told(aupdate_progress_artifact(bar, percent, said))


async def _publish(name: str, bar: UUID | None, rows: list[Iteration], result: PairResult) -> None:
    """The artifacts of a pair that has ended."""
    key = pages.slug(name)
    shown = pages.interval(result.speedup, result.speedup_low, result.speedup_high)
    await _moved(bar, 100.0, f"{result.verdict}: {shown}")
    title = pages.clean(f"{name}: {result.verdict}, {result.reason}")[:500]
    await told(acreate_table_artifact(pages.step_rows(rows), f"iterations-{key}", title))
    best = pages.best(rows)
    if best is not None:
        drawn = pictures.page(rows) if bar is not None else ""
        page = pages.best_page(best, drawn)
        await told(acreate_markdown_artifact(page, f"best-{key}", title))
