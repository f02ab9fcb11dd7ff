"""Kernels leave the house when a person has said so: a real server, the API's Resume."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun

from flows.engine import CLIENT
from tasks import served
from tests.flows.api import ask, until

pytestmark = [pytest.mark.prefect, pytest.mark.e2e, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0


async def answered(url: str, name: str, *, approved: bool) -> None:
    """Waits until the run asks, and answers as the form of the UI does."""
    until = time.monotonic() + PATIENCE_S
    async with PrefectClient(url) as client:
        while (run := await paused(client, name)) is None:
            assert time.monotonic() < until, name
            await asyncio.sleep(0.5)
        await client.resume_flow_run(run.id, run_input={"approved": approved})


async def paused(client: PrefectClient, name: str) -> FlowRun | None:
    runs = await client.read_flow_runs()
    return next((r for r in runs if r.name == name and r.state_name == "Paused"), None)


def artifact(url: str, key: str) -> dict[str, Any]:
    """The one of that name, once it is there."""
    wanted = {"artifacts": {"key": {"any_": [key]}}}
    (found,) = until(key, lambda: ask(url, "/artifacts/filter", wanted), PATIENCE_S)
    return dict(found)


def test_a_package_is_written_only_after_somebody_approves(runs: Path, tmp_path: Path) -> None:
    """What would go is shown first; a no and a day without an answer leave nothing behind."""
    known = served.recorded(runs)
    assert known is not None
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.flows.asking", tmp_path],
        cwd=ROOT,
        env={**os.environ, **CLIENT, "PREFECT_API_URL": known.url, "PREFECT_HOME": str(runs)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        asyncio.run(answered(known.url, "publish unwanted for cpu", approved=False))
        shown = artifact(known.url, "publish-wanted")
        assert "layer_norm@cpu" in str(shown["data"])
        assert "layer_norm_cpu, mish_cpu would be written" in shown["description"]
        assert list(tmp_path.iterdir()) == []
        asyncio.run(answered(known.url, "publish wanted for cpu", approved=True))
        said, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    states = dict(line.split(maxsplit=1) for line in said.splitlines() if " " in line)
    assert states["wanted"] == "Completed", said
    assert states["unwanted"] == states["forgotten"] == "Not approved", said
    assert [each.name for each in tmp_path.iterdir()] == ["wanted"]
    assert (tmp_path / "wanted" / "wanted" / "kernels" / "mish_cpu.py").exists()
    assert "mish" in artifact(known.url, "published-wanted")["data"]
