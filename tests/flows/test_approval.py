"""Spending above a limit waits for a person: a real server, a real process, the API's Resume."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.engine import CLIENT
from tasks import served

pytestmark = [pytest.mark.prefect, pytest.mark.e2e, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0


class Night:
    """A campaign under way, as its process and as its run on the server."""

    def __init__(self, runs: Path, ledger: Path, above: float) -> None:
        known = served.recorded(runs)
        assert known is not None
        self.url = known.url
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.flows.costly", ledger, str(above)],
            cwd=ROOT,
            env={
                **os.environ,
                **CLIENT,
                "PREFECT_API_URL": known.url,
                "PREFECT_HOME": str(runs / ".prefect" / "home"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def resumed(self, **answer: Any) -> None:
        """Once it is Paused, answers as the form of the UI does."""
        with temporary_settings({PREFECT_API_URL: self.url}):
            asyncio.run(self._resume(answer))

    async def _resume(self, answer: dict[str, Any]) -> None:
        until = time.monotonic() + PATIENCE_S
        async with get_client() as client:
            while (run := await latest(client)) is None or run.state_name != "Paused":
                assert time.monotonic() < until, run
                assert self.process.poll() is None, self.process.communicate()
                await asyncio.sleep(0.5)
            keyset = run.state.state_details.run_input_keyset if run.state else None
            assert keyset is not None
            said = await client.read_flow_run_input(run.id, keyset["description"])
            assert "4.00 USD, more than the 1.00" in said
            await client.resume_flow_run(run.id, run_input=answer)

    def ended(self) -> tuple[str, str]:
        """What the process printed, and the name of the run's state."""
        said, _ = self.process.communicate(timeout=PATIENCE_S)
        with temporary_settings({PREFECT_API_URL: self.url}):
            return said, asyncio.run(self._state())

    async def _state(self) -> str:
        async with get_client() as client:
            run = await latest(client)
            assert run is not None
            return str(run.state_name)


async def latest(client: PrefectClient) -> FlowRun | None:
    """The newest run of the deployment's flow."""
    named = FlowRunFilter(name={"like_": "costly"})  # type: ignore[arg-type]
    runs = await client.read_flow_runs(
        flow_run_filter=named, sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=1
    )
    return runs[0] if runs else None


def test_nothing_is_spent_before_somebody_approves(runs: Path, tmp_path: Path) -> None:
    """Two pairs of two dollars wait at a limit of one, and go on after Resume."""
    night = Night(runs, tmp_path / "runs", 1.0)
    night.resumed(approved=True)
    said, state = night.ended()
    assert "spends" in said
    assert state == "Completed", said


def test_who_resumes_without_approving_ends_it(runs: Path, tmp_path: Path) -> None:
    """The form's default is no: the run is cancelled and nothing was spent."""
    night = Night(runs, tmp_path / "runs", 1.0)
    night.resumed()
    said, state = night.ended()
    assert "spends" not in said
    assert state == "Not approved", said


def test_what_costs_less_asks_nobody(runs: Path, tmp_path: Path) -> None:
    """Below the limit nobody is waited for."""
    said, state = Night(runs, tmp_path / "runs", 4.0).ended()
    assert "spends" in said
    assert state == "Completed", said
