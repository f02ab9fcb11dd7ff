"""What deployments run: flows whose parameters are the fields of a form (`prefect.yaml`).

Their names, numbers and menus become a campaign here; the pairs are subflows of these flows.
"""

import asyncio
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_table_artifact,
)
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed

import tasks.requalify
from data import mirror
from data.errors import LimitError, MachineError
from data.records import Policy
from data.report.page import Report, write
from flows.port import ported
from flows.reporting import linked, reported
from flows.requalify import judge
from tasks import pages
from tasks.approval import refusal
from tasks.asked import Asked
from tasks.campaign import PairResult
from tasks.devices import find
from tasks.forms import (
    Agents,
    Amount,
    ApiBase,
    Device,
    Devices,
    Operator,
    Operators,
    Parallel,
    Steps,
    Tokens,
    form,
)
from tasks.health import Check
from tasks.newcomer import examine
from tasks.nights import tonight
from tasks.onboarding import first_operators
from tasks.requalify import Terms, today
from tasks.standing import Place, rows


async def _within_limits(
    asked: Asked, approve_above_usd: float | None = None
) -> list[PairResult] | State[Any]:
    """The results; a campaign that has taken what it may is done for tonight, and says so."""
    campaign = tonight(asked)
    if why := await refusal(campaign, approve_above_usd):
        return Cancelled(name="Not approved", message=why)
    done: list[PairResult] | State[Any]
    try:
        done = await ported(campaign)
    except LimitError as error:
        done = Completed(name="Stopped early", message=str(error))
    except MachineError:
        await reported(campaign)
        raise
    await reported(campaign)
    return done


def _named() -> str:
    """What is ported to what, short enough for a list of runs."""
    given = flow_run.parameters
    what = given.get("suite") or given.get("operators") or given.get("operator") or "all"
    where = given.get("devices") or given.get("device")
    return f"{_listed(what)} on {_listed(where)} {given.get('epoch', '')}".strip()


def _listed(names: object) -> str:
    several = list(names) if isinstance(names, list | tuple) else [names]
    more = f" and {len(several) - 3} more" if len(several) > 3 else ""
    return ", ".join(str(n).rstrip("/").rpartition("/")[2] for n in several[:3]) + more


@flow(name="port suite", flow_run_name=_named, persist_result=False)
@form
async def port_suite(  # noqa: PLR0913  (a form has one field a parameter)
    *,
    devices: Devices,
    suite: str | None = None,
    steps: Steps = 8,
    contract: Policy = Policy.STRICT,
    agents: Agents = "offline",
    model: str | None = None,
    api_base: ApiBase = None,
    epoch: str = "night",
    hours: Amount = None,
    device_minutes: Amount = None,
    tokens: Tokens = None,
    campaign_usd: Amount = None,
    approve_above_usd: Amount = None,
    parallel: Parallel = 2,
    runs: str = "runs",
) -> list[PairResult] | State[Any]:
    """Every operator of a suite on the devices; of ours when no suite is named."""
    asked = Asked(
        devices=tuple(devices),
        suite=suite,
        steps=steps,
        policy=contract,
        agents=agents,
        model=model,
        api_base=api_base,
        epoch=epoch,
        hours=hours,
        device_minutes=device_minutes,
        tokens=tokens,
        campaign_usd=campaign_usd,
        parallel=parallel,
        runs=runs,
    )
    return await _within_limits(asked, approve_above_usd)


@flow(name="port operators", flow_run_name=_named, persist_result=False)
@form
async def port_operators(  # noqa: PLR0913  (a form has one field a parameter)
    *,
    operators: Operators,
    devices: Devices,
    steps: Steps = 8,
    contract: Policy = Policy.STRICT,
    agents: Agents = "offline",
    model: str | None = None,
    api_base: ApiBase = None,
    epoch: str = "default",
    hours: Amount = None,
    device_minutes: Amount = None,
    tokens: Tokens = None,
    campaign_usd: Amount = None,
    approve_above_usd: Amount = None,
    parallel: Parallel = 2,
    runs: str = "runs",
) -> list[PairResult] | State[Any]:
    """Some of our operators on some devices."""
    asked = Asked(
        operators=tuple(operators),
        devices=tuple(devices),
        steps=steps,
        policy=contract,
        agents=agents,
        model=model,
        api_base=api_base,
        epoch=epoch,
        hours=hours,
        device_minutes=device_minutes,
        tokens=tokens,
        campaign_usd=campaign_usd,
        parallel=parallel,
        runs=runs,
    )
    return await _within_limits(asked, approve_above_usd)


@flow(name="port pair", flow_run_name=_named, persist_result=False)
@form
async def port_pair(  # noqa: PLR0913  (a form has one field a parameter)
    *,
    operator: Operator,
    device: Device,
    steps: Steps = 8,
    contract: Policy = Policy.STRICT,
    agents: Agents = "offline",
    model: str | None = None,
    api_base: ApiBase = None,
    epoch: str = "default",
    runs: str = "runs",
) -> list[PairResult] | State[Any]:
    """One operator on one device."""
    asked = Asked(
        operators=(operator,),
        devices=(device,),
        steps=steps,
        policy=contract,
        agents=agents,
        model=model,
        api_base=api_base,
        epoch=epoch,
        runs=runs,
    )
    return await _within_limits(asked)


@flow(name="onboard", flow_run_name="onboard {device}", persist_result=False)
@form
async def onboard(
    *,
    device: Device,
    steps: Steps = 4,
    agents: Agents = "offline",
    model: str | None = None,
    runs: str = "runs",
) -> list[PairResult] | State[Any]:
    """A new chip: what it can do, whether it judges rightly, and one operator of each family.

    The run fails before anything is ported when a check of `kforge onboard` does.
    """
    (found,) = find((device,))
    checks: list[Check] = []
    page = await examine(found, mirror.folder(runs).absolute(), checks.append)
    if page:
        await acreate_markdown_artifact(pages.clean(page), f"device-{pages.slug(device)}", device)
    table = [{"check": c.name, "state": c.state, "found": pages.clean(c.found)} for c in checks]
    await acreate_table_artifact(table, f"onboard-{pages.slug(device)}", device)
    if failed := [f"{c.name}: {c.found}" for c in checks if not c.ok]:
        raise MachineError(f"{device} is not ready: {'; '.join(failed)}")
    asked = Asked(
        operators=first_operators(),
        devices=(device,),
        steps=steps,
        agents=agents,
        model=model,
        epoch=f"onboard-{today()}",
        runs=runs,
    )
    return await _within_limits(asked)


def _looked_at() -> str:
    given = flow_run.parameters
    return f"requalify {_listed(given.get('devices') or 'all devices')} {given.get('epoch', '')}"


@flow(name="requalify", flow_run_name=_looked_at, persist_result=False)
@form
async def requalify(
    *,
    devices: Devices | None = None,
    every: bool = False,
    epoch: str = "date",
    runs: str = "runs",
) -> None:
    """Accepted kernels verified and timed again where their environment changed.

    The run fails when a kernel lost its standing: the table `requalified` says which.
    """
    terms = Terms(
        runs=mirror.folder(runs).absolute(),
        devices=tuple(devices or ()),
        every=every,
        epoch=today() if epoch in ("date", "night") else epoch,
    )
    done = await tasks.requalify.requalify(terms, seen=_logged)
    await acreate_table_artifact(rows(done), "requalified", f"{len(done)} places looked at")
    judge(done)


@flow(name="report", flow_run_name="report {runs}", persist_result=False)
@form
async def report(*, out: str = "kforge-report.html", runs: str = "runs") -> str:
    """One page of the whole ledger that opens offline; the path of the file."""
    written = await asyncio.to_thread(_page, runs, out)
    await linked(written)
    return str(written.path)


def _page(runs: str, out: str) -> Report:
    return write(mirror.folder(runs), Path(out).absolute())


def _logged(place: Place) -> None:
    for row in rows((place,)):
        get_run_logger().info("%s: %s -> %s %s", *(row[n] for n in _SHOWN))


_SHOWN = ("pair", "before", "now", "alarm")
