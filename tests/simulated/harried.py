"""A simulated campaign under a worker: the flow that a test deploys.

The worker's process runs this file, so that the machine is installed where the flow runs.
"""

import os
from pathlib import Path

from prefect import flow

import flows.port
from tasks.campaign import campaign_file, read_campaign
from tests.simulated.machine import install


@flow(name="harried", flow_run_name="{run_id}", persist_result=False)
async def harried(runs: str, run_id: str) -> int:
    """Ports the stored campaign; the number of pairs."""
    install(Path(runs))
    known(Path(runs))
    return len(await flows.port.ported(read_campaign(campaign_file(Path(runs), run_id))))


def known(runs: Path) -> None:
    """Notes this process, so that a test can kill it."""
    with (runs / "controllers").open("a") as file:
        file.write(f"{os.getpid()}\n")
