"""Deployments, pools and automations on a real server, and a worker that does what they say."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from data import views
from tasks import served
from tests.flows.api import ask, until

pytestmark = [pytest.mark.prefect, pytest.mark.e2e, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
POOL_TYPE = "process"


def environment(runs: Path) -> dict[str, str]:
    """Of a client of the test's server."""
    known = served.recorded(runs)
    assert known is not None
    return {
        **os.environ,
        "PREFECT_API_URL": known.url,
        "PREFECT_HOME": str(runs / ".prefect" / "client"),
        "PYTHONPATH": str(ROOT),
    }


def tool(runs: Path, *words: str, **more: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        [BIN / words[0], *words[1:]],
        cwd=ROOT,
        env=environment(runs) | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def deployed(runs: Path) -> Path:
    """The ledger folder of a server with all that `bootstrap` and `deploy` make, made twice."""
    for _ in range(2):
        tool(runs, "kforge", "bootstrap", "--runs", str(runs))
        tool(runs, "prefect", "--no-prompt", "deploy", "--all")
    return runs


@pytest.fixture(scope="module")
def client_url(runs: Path) -> str:
    known = served.recorded(runs)
    assert known is not None
    return known.url


def ours(url: str) -> list[dict[str, Any]]:
    """The deployments of our pool; other tests' may be on the same server."""
    return [d for d in ask(url, "/deployments/filter", {}) if d["work_pool_name"] == "kforge"]


def test_twice_is_once(deployed: Path, client_url: str) -> None:
    """Pools, queues, limits, automations and deployments are there, each one time."""
    pools = ask(client_url, "/work_pools/filter", {})
    assert [p["type"] for p in pools if p["name"] == "kforge"] == [POOL_TYPE]
    for path, wanted in (
        ("/work_pools/kforge/queues/filter", {"default", "cpu", "h200"}),
        ("/v2/concurrency_limits/filter", {"device-cpu", "device-h200"}),
        ("/automations/filter", {"kforge-silent", "kforge-crashed"}),
    ):
        names = [row["name"] for row in ask(client_url, path, {"limit": 200})]
        assert wanted <= set(names)
        assert len(names) == len(set(names)), path
    found = [d["name"] for d in ours(client_url)]
    assert sorted(found) == [
        "onboard-device",
        "port-nightly",
        "port-on-demand",
        "port-pair",
        "port-remote",
        "publish",
        "report",
        "requalify-weekly",
    ]


def test_forms_have_menus_and_bounds(deployed: Path, client_url: str) -> None:
    """What the UI draws: devices, operators and agents to choose from, steps within bounds."""
    by_name = {d["name"]: d for d in ours(client_url)}
    form = by_name["port-on-demand"]["parameter_openapi_schema"]["properties"]
    assert {"cpu", "h200"} <= set(form["devices"]["items"]["enum"])
    assert "softmax" in form["operators"]["items"]["enum"]
    assert form["agents"]["enum"] == ["offline", "llm"]
    assert (form["steps"]["minimum"], form["steps"]["maximum"]) == (1, 200)
    assert all(field.get("description") for field in form.values()), form


def test_schedules_are_in_utc_and_off(deployed: Path, client_url: str) -> None:
    """Nobody's processor is busy at night who has not asked for it."""
    found = ours(client_url)
    schedules = [s for d in found for s in d["schedules"]]
    assert len(schedules) == 3
    assert {s["schedule"]["timezone"] for s in schedules} == {"UTC"}
    assert not any(s["active"] for s in schedules)


def test_a_device_that_is_not_in_the_menu_is_refused(deployed: Path, client_url: str) -> None:
    """By the server, before a run is made."""
    import httpx

    by_name = {d["name"]: d for d in ours(client_url)}
    path = f"/deployments/{by_name['port-pair']['id']}/create_flow_run"
    with pytest.raises(httpx.HTTPStatusError, match=r"409|422"):
        ask(client_url, path, {"parameters": {"operator": "relu", "device": "b2000"}})


def test_the_alarm_posts_where_it_is_told(deployed: Path, client_url: str) -> None:
    """With the variable there is a block and an automation that uses it."""
    told = tool(
        deployed,
        *("kforge", "bootstrap", "--runs", str(deployed), "--json"),
        KFORGE_ALARM_URL="http://127.0.0.1:9/alarm",
    )
    rows = [json.loads(line) for line in told.splitlines()]
    assert {"kforge-alarm"} == {r["name"] for r in rows if r["kind"] == "block"}
    automations = ask(client_url, "/automations/filter", {"limit": 200})
    assert "kforge-alarm" in {a["name"] for a in automations}
    assert "127.0.0.1:9" not in told


@contextmanager
def worker(runs: Path) -> Iterator[Path]:
    """A worker of the pool; the file that it writes to. It and its children end with the block."""
    log = runs / "worker.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [BIN / "prefect", "worker", "start", "--pool", "kforge", "--limit", "2"],
            cwd=runs,
            # The worker, not who deployed, says where its checkout is.
            env=environment(runs)
            | {"KFORGE_CHECKOUT": str(ROOT), "PREFECT_WORKER_QUERY_SECONDS": "2"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield log
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)


OPERATOR = """import torch
FAMILY = "map"
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x) + 1.0
def get_inputs(): return [torch.randn(256, 512)]
def get_init_inputs(): return []
"""


@pytest.mark.e2e
@pytest.mark.long
def test_a_worker_runs_a_scheduled_campaign(
    deployed: Path, client_url: str, tmp_path: Path
) -> None:
    """The scheduler makes the run, the worker takes it, the ledger holds the verdicts."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "shifted.py").write_text(OPERATOR)
    ledger = tmp_path / "ledger"
    by_name = {d["name"]: d for d in ours(client_url)}
    nightly = by_name["port-nightly"]["id"]
    given = {
        "devices": ["cpu"],
        "suite": str(tmp_path / "suite"),
        "steps": 1,
        "runs": str(ledger),
    }
    ask(client_url, f"/deployments/{nightly}", {"parameters": given}, "PATCH")
    soon = {"schedule": {"interval": timedelta(hours=1).total_seconds()}, "active": True}
    soon["schedule"]["anchor_date"] = time.strftime(  # type: ignore[index]
        "%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 20)
    )
    (made,) = ask(client_url, f"/deployments/{nightly}/schedules", [soon])
    try:
        with worker(deployed) as log:

            def ended() -> Any:
                found = ask(
                    client_url,
                    "/flow_runs/filter",
                    {"deployments": {"id": {"any_": [nightly]}}},
                )
                return [r for r in found if r["state_type"] in ("COMPLETED", "FAILED", "CRASHED")]

            (run,) = until("the scheduled run", ended, 600)
            assert run["state_type"] == "COMPLETED", log.read_text()[-3000:]
            assert run["auto_scheduled"]
    finally:
        ask(client_url, f"/deployments/{nightly}/schedules/{made['id']}", None, "DELETE")
    verdicts = views.query(ledger, "SELECT verdict FROM iterations").to_pylist()
    assert verdicts, "nothing is on record"
    assert [f.suffix for f in (ledger / "reports").iterdir()] == [".html"]
