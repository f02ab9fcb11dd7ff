"""The page of a ledger or of one campaign, linked from the run that wrote it."""

import asyncio
import os
from pathlib import Path

from prefect.artifacts import acreate_link_artifact
from prefect.logging import get_run_logger

from data.errors import KForgeError
from data.report.page import Report, write
from flows.heard import told
from tasks import pages
from tasks.campaign import Campaign

ADDRESS = "KFORGE_REPORTS_URL"
"""Where a web server shows the folder of reports: browsers follow no link from it to a file."""


async def reported(campaign: Campaign) -> None:
    """A link to the campaign's page beside its ledger; none while nothing is on record."""
    try:
        await linked(await asyncio.to_thread(_page, campaign))
    except KForgeError as error:
        get_run_logger().warning("no report: %s", error)


def _page(campaign: Campaign) -> Report:
    root = Path(campaign.runs)
    (root / "reports").mkdir(parents=True, exist_ok=True)
    return write(root, root / "reports" / f"{campaign.run_id}.html", campaign.run_id)


async def linked(written: Report) -> None:
    """Shows the link in the run; what the page lacks goes to the log."""
    for text in written.left_out:
        get_run_logger().warning("left out of the page: %s", text)
    address = pages.address(written.path, os.environ.get(ADDRESS))
    await told(acreate_link_artifact(address, str(written.path), key="report"))
