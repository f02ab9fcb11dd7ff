"""Cancel in the UI stops what runs on the other machine."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks import served
from tasks.asked import Asked, compose
from tasks.campaign import store_campaign
from tests.flows.api import ask, until
from tests.targets.machines.hosts import Host, missing

pytestmark = [pytest.mark.prefect, pytest.mark.net, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
STOPPED_S = 25.0
SLOW = """import time
import torch
FAMILY = "map"
class Model(torch.nn.Module):
    def forward(self, x):
        time.sleep(60.0)
        return torch.relu(x)
def get_inputs(): return [torch.randn(64)]
def get_init_inputs(): return []
"""
DEVICES = """
[[machine]]
name = "lab"
kind = "ssh"
host = "{host}"
python = "{python}"
root = "{root}"
config = "{config}"

[[device]]
name = "lab-cpu"
target = "cpu"
arch = "x86_64"
machine = "lab"
"""
DEPLOYED = """
name: cancelled
pull:
  - prefect.deployments.steps.set_working_directory:
      directory: "{folder}"
deployments:
  - name: cancelled
    entrypoint: flows/port.py:port
    work_pool: {{name: cancelled}}
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """One SSH host."""
    if why := missing():
        pytest.skip(why)
    key = tmp_path / "id_ed25519"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=60
    )
    made = Host(tmp_path / "host", 7, key)
    try:
        made.up()
        made.trust()
        yield made
    finally:
        made.down()


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """Where the worker runs: this code with a `devices.toml` of its own."""

    folder: Path
    environment: dict[str, str]

    def prefect(self, *words: str) -> None:
        subprocess.run(
            [BIN / "prefect", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )


@pytest.fixture
def checkout(runs: Path, host: Host, tmp_path: Path) -> Checkout:
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("flows", "tasks", "agents", "targets", "data"):
        (folder / name).symlink_to(ROOT / name)
    place = host.destination(python=sys.executable)
    (folder / "devices.toml").write_text(
        DEVICES.format(host=place.host, python=place.python, root=place.root, config=place.config)
    )
    (folder / "prefect.yaml").write_text(DEPLOYED.format(folder=folder))
    known = served.recorded(runs)
    assert known is not None
    more = {
        "PREFECT_API_URL": known.url,
        "PREFECT_HOME": str(tmp_path / "home"),
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "PYTHONPATH": str(folder),
    }
    return Checkout(folder=folder, environment={**os.environ, **more})


def work(host: Host) -> set[int]:
    """Processes of jobs, a sandbox's children among them.

    Not sshd, nor the resident and its one judge server with its warm process and what that
    compiles once: they wait for the next controller and end by themselves (docs/machines.md).
    """
    lines = {pid: line(pid) for pid in host.processes()}
    known = {p: c for p, c in lines.items() if c and not re.search("sshd|machines.resident", c)}
    servers = [pid for pid, command in known.items() if "targets.remote.serve" in command]
    warm = {pid for pid, command in known.items() if "targets.remote.warm" in command}
    return (set(known) - set(servers[:1]) - warm) | {c for pid in warm for c in judged(pid)}


def judged(warm: int) -> set[int]:
    """Children that a warm process has forked: behind its walls, and not itself."""
    below = {int(c) for c in children(warm)}
    for pid in tuple(below):
        below |= judged(pid)
    forked = {pid for pid in below if "targets.remote.warm" in line(pid)}
    return {pid for pid in forked if "bwrap" not in line(pid) + line(parent(pid))}


def children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def parent(pid: int) -> int:
    """Its number; 0 when the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def line(pid: int) -> str:
    """The command of a process; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def lasting(host: Host) -> set[int]:
    """Work that goes on for 15 s at least: the operator sleeps for a minute."""
    before = work(host)
    time.sleep(15.0)
    return before & work(host)


def test_cancel_stops_what_runs_on_the_host(
    runs: Path, host: Host, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within 25 s of the click no work of the run is left there, and the run is Cancelled."""
    url = checkout.environment["PREFECT_API_URL"]
    (tmp_path / "slow.py").write_text(SLOW)
    monkeypatch.chdir(checkout.folder)
    made = compose(
        Asked(
            operators=(str(tmp_path / "slow.py"),),
            devices=("lab-cpu",),
            runs=str(tmp_path / "ledger"),
        )
    )
    store_campaign(made)
    checkout.prefect("work-pool", "create", "cancelled", "--type", "process")
    checkout.prefect("--no-prompt", "deploy", "--all")
    with (
        (tmp_path / "worker.log").open("ab") as log,
        subprocess.Popen(
            [BIN / "prefect", "worker", "start", "--pool", "cancelled"],
            cwd=tmp_path,
            env=checkout.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as worker,
    ):
        try:
            deployment = ask(url, "/deployments/name/port/cancelled", method="GET")["id"]
            given = {"runs": made.runs, "run_id": made.run_id, "epoch": made.epoch}
            run = ask(url, f"/deployments/{deployment}/create_flow_run", {"parameters": given})
            until("work that lasts", lambda: lasting(host), 300.0)
            state = {"state": {"type": "CANCELLING"}}
            ask(url, f"/flow_runs/{run['id']}/set_state", state)
            clicked = time.monotonic()
            while work(host) and time.monotonic() - clicked < STOPPED_S:
                time.sleep(0.5)
            took = time.monotonic() - clicked
            print(f"stopped after {took:.1f} s")
            assert not work(host), [line(pid) for pid in work(host)]
            until(
                "the state Cancelled",
                lambda: (
                    ask(url, f"/flow_runs/{run['id']}", method="GET")["state_type"] == "CANCELLED"
                ),
                60.0,
            )
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            host.kill_all()
