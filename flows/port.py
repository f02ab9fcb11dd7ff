"""A campaign as a Prefect flow: one subflow a pair, two at a time."""

from datetime import UTC, datetime
from pathlib import Path

from prefect import flow, tags, task
from prefect.artifacts import acreate_table_artifact
from prefect.cache_policies import NO_CACHE

from data.records import Pair
from flows.pair import pair
from tasks import pages
from tasks.asked import Asked, compose
from tasks.campaign import PairResult, campaign_file, read_campaign, store_campaign
from tasks.running import run_all


@flow(name="port", flow_run_name="{run_id} {epoch}", persist_result=False)
async def port(runs: str, run_id: str, epoch: str) -> list[PairResult]:
    """Ports all pairs of the campaign stored under RUNS/campaigns; goes on from the ledger.

    The pairs are never retried here and never gathered as flows: a retried parent would hand out
    their results swapped (PREFECT.md, section 2). MachineError at the end when a pair failed.
    """
    campaign = read_campaign(campaign_file(Path(runs), run_id))
    assert campaign.epoch == epoch
    done: list[PairResult] = []

    async def one(subject: Pair) -> PairResult:
        marks = {subject.device.name, subject.device.vendor, subject.operator.family or "unknown"}
        with tags(*sorted(marks)):
            done.append(await start(runs, run_id, subject.operator.name, subject.device.name))
        return done[-1]

    try:
        return list(await run_all(campaign, one))
    finally:
        await acreate_table_artifact(pages.result_rows(done), "speedups", pages.summary(done))


@task(
    name="start", task_run_name="{operator}@{device}", cache_policy=NO_CACHE, persist_result=False
)
async def start(runs: str, run_id: str, operator: str, device: str) -> PairResult:
    """Enters the pair's flow. Nothing is cached: the ledger knows what has been done."""
    return await pair(runs, run_id, operator, device)


@flow(name="port by name", flow_run_name="{devices} {epoch}", persist_result=False)
async def port_by_name(  # noqa: PLR0913  (a deployment's form has one field a parameter)
    *,
    operators: list[str] | None = None,
    devices: list[str] | None = None,
    steps: int = 8,
    contract: str = "strict",
    agents: str = "offline",
    model: str | None = None,
    epoch: str = "default",
    runs: str = "runs",
) -> list[PairResult]:
    """What deployments run: makes the campaign from names; the epoch `date` is today in UTC."""
    today = datetime.now(UTC).date().isoformat()
    campaign = compose(
        Asked(
            operators=tuple(operators or ()),
            devices=tuple(devices or ("cpu",)),
            steps=steps,
            policy=contract,
            agents=agents,
            model=model,
            epoch=today if epoch == "date" else epoch,
            runs=runs,
        )
    )
    store_campaign(campaign)
    return await port(campaign.runs, campaign.run_id, campaign.epoch)
