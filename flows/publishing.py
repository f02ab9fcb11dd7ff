"""The deployment `publish`: confirmed kernels leave as a package when a person has said so."""

import asyncio
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from prefect.states import Cancelled

from data import mirror
from data.records import Policy
from data.upkeep import require
from tasks import pages
from tasks.approval import refused
from tasks.export.chosen import Terms
from tasks.export.planned import Plan, planned, rows
from tasks.export.writing import write
from tasks.forms import Devices, form


def _named() -> str:
    given = flow_run.parameters
    return f"publish {Path(given['folder']).name} for {', '.join(given['devices'])}"


@flow(name="publish", flow_run_name=_named, persist_result=False)
@form
async def publish(  # noqa: PLR0913  (a form has one field a parameter)
    *,
    devices: Devices,
    folder: str,
    kernels: list[str] | None = None,
    contract: Policy = Policy.STRICT,
    unreviewed: bool = False,
    runs: str = "runs",
) -> str | State[Any]:
    """Confirmed kernels as a package; shown first, written only after Resume; its folder."""
    terms = Terms(
        runs=mirror.folder(runs).absolute(),
        devices=tuple(devices),
        operators=tuple(kernels or ()),
        policy=contract,
        unreviewed=unreviewed,
    )
    plan = await asyncio.to_thread(_plan, terms, folder)
    text = _asked(plan)
    await acreate_table_artifact(rows(plan), f"publish-{pages.slug(plan.name)}", text)
    if why := await refused(text):
        return Cancelled(name="Not approved", message=why)
    made = await asyncio.to_thread(write, plan)
    page = (made.folder / "VERIFICATION.md").read_text(encoding="utf-8")
    await acreate_markdown_artifact(
        pages.clean(page)[: pages.PAGE_BYTES], f"published-{pages.slug(plan.name)}", text
    )
    get_run_logger().info("written: %s with %s", made.folder, ", ".join(made.kernels))
    return str(made.folder)


def _plan(terms: Terms, folder: str) -> Plan:
    require(terms.runs)
    return planned(terms, Path(folder).absolute())


def _asked(plan: Plan) -> str:
    """What somebody is asked to approve of, in a sentence."""
    shown = ", ".join(part.entry.name for part in plan.parts[:8])
    more = f" and {len(plan.parts) - 8} more" if len(plan.parts) > 8 else ""
    stay = f"; {len(plan.left_out)} stay" if plan.left_out else ""
    return (
        f"The package {plan.name} with {shown}{more}{stay} would be written to {plan.folder}; the"
        f" table publish-{pages.slug(plan.name)} of this run has their figures."
    )
