"""Everything is killed at random and started again, as a supervisor would; nothing is lost.

Half an hour of nights in some minutes: marked `long`.
"""

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from data import views
from data.answers import plain
from flows.engine import CLIENT
from tasks.campaign import Campaign, ended
from tests.simulated.campaign import campaign
from tests.simulated.machine import HOST
from tests.simulated.servers import Postgresql, PrefectServer, model, needs_postgresql
from tests.targets.machines.hosts import Host, missing

pytestmark = [pytest.mark.long, pytest.mark.net, pytest.mark.timeout(1500), needs_postgresql]

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PAIRS, STEPS, PARALLEL = 40, 8, 8
WORK_S = 0.5
PATIENCE_S = 900.0
PARTS = ("worker", "server", "database", "controller", "host")
KILLS = 2
MARK = "KFORGE_TEST_SITE"
PLACE = "run_id, operator_hash, device, contract, lineage, step, role, prompt_hash"
SAME = (
    "operator, device, contract, lineage, step, mode, candidate_id, verdict, speedup, baseline,"
    " techniques, advice, prompt_hash"
)
"""What a row says that does not depend on when it was made."""


class Site:
    """Database, server, worker, controller and the host on which candidates are measured.

    Each can be killed, and a supervisor restarts it.
    """

    def __init__(self, folder: Path, endpoint: str, host: Host) -> None:
        self.folder, self.runs, self.host = folder, folder / "runs", host
        (folder / "server").mkdir()
        self.database = Postgresql()
        self.server = PrefectServer(folder / "server", self.database.url)
        self.made = made(self.runs, endpoint)
        self.worker: subprocess.Popen[bytes] | None = None
        self.killed: Counter[str] = Counter()

    def open(self) -> None:
        """Starts database and server and deploys the campaign."""
        self.database.start()
        self.server.start()
        self.tool("work-pool", "create", "kforge", "--type", "process")
        self.tool(
            "--no-prompt", "deploy", "--prefect-file", "tests/simulated/harried.yaml", "--all"
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **CLIENT,
            "PREFECT_API_URL": self.server.url,
            "PREFECT_HOME": str(self.folder / "client"),
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            "PYTHONPATH": str(ROOT),
            MARK: str(self.folder),
            HOST: json.dumps(asdict(self.host.destination(python=sys.executable)), default=str),
        }

    def tool(self, *words: str) -> None:
        """A command of Prefect; patient with a server that is just coming up."""
        command = [str(BIN / "prefect"), *words]
        for _ in range(4):
            done = subprocess.run(
                command, cwd=ROOT, env=self.environment, capture_output=True, check=False
            )
            if done.returncode == 0:
                return
            time.sleep(3.0)
        raise AssertionError(done.stdout.decode() + done.stderr.decode())

    def controllers(self) -> list[int]:
        """Processes of flows that are alive."""
        listed = self.runs / "controllers"
        pids = map(int, listed.read_text().split()) if listed.exists() else ()
        return [pid for pid in pids if alive(pid, str(self.folder))]

    def tend(self) -> None:
        """What a supervisor does: starts again whatever is dead."""
        if not self.database.alive:
            self.database.start()
        if not self.server.alive:
            self.server.start()
        if not self.host.processes():
            self.host.start_sshd()
        if self.worker is None or self.worker.poll() is not None:
            with (self.folder / "worker.log").open("ab") as out:
                self.worker = subprocess.Popen(
                    [BIN / "prefect", "worker", "start", "--pool", "kforge"],
                    cwd=self.folder,
                    env=self.environment
                    | {"KFORGE_CHECKOUT": str(ROOT), "KFORGE_SIMULATED_STEP_S": str(WORK_S)},
                    stdout=out,
                    stderr=subprocess.STDOUT,
                )

    def run(self) -> None:
        """What a person does: starts the campaign, once more if need be."""
        given = ("-p", f"runs={self.runs}", "-p", f"run_id={self.made.run_id}")
        self.tool("deployment", "run", "harried/harried", *given)

    def harm(self, what: str) -> None:
        """Kills one part with a signal that nobody can handle."""
        self.killed[what] += 1
        if what == "database":
            self.database.kill()
        elif what == "server":
            self.server.kill()
        elif what == "host":
            self.host.kill_all()
        elif what == "worker" and self.worker is not None:
            self.worker.kill()
            self.worker.wait()
        elif what == "controller":
            for pid in self.controllers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends everything; what was left over is killed and told."""
        if self.worker is not None:
            self.worker.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.worker.wait(30)
            self.worker.kill()
            self.worker.wait()
        self.server.kill(signal.SIGTERM)
        self.database.close()


def alive(pid: int, mark: str) -> bool:
    """Whether the process is one of ours and no zombie."""
    try:
        marked = f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        return marked and ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def left(mark: str) -> list[int]:
    """Processes of the site that are alive."""
    pids = (int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit())
    return [pid for pid in pids if alive(pid, mark)]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """In a network namespace of its own, with its own sshd and keys."""
    if why := missing():
        pytest.skip(why)
    key = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    one = Host(tmp_path / "host", 9, key)
    try:
        one.up()
        one.trust()
        yield one
    finally:
        one.down()


def made(runs: Path, endpoint: str) -> Campaign:
    return campaign(runs, pairs=PAIRS, steps=STEPS, api_base=endpoint, parallel=PARALLEL)


def rows(runs: Path) -> list[str]:
    """The ledger without times of day, in order."""
    order = "operator, device, step"
    return [
        json.dumps(row, sort_keys=True)
        for row in plain(views.query(runs, f"SELECT {SAME} FROM iterations ORDER BY {order}"))
    ]


def counted(runs: Path, sql: str) -> int:
    (row,) = views.query(runs, sql).to_pylist()
    return int(row["n"])


def held(runs: Path) -> list[str]:
    """Locks that somebody still has: of pairs and of devices."""
    found = []
    for path in [*(runs / "claims").rglob("*.lock"), *(runs / ".leases").rglob("*")]:
        if path.is_file():
            with path.open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    found.append(path.name)
    return found


def undisturbed(folder: Path, endpoint: str) -> list[str]:
    """The ledger of the same campaign with nothing around it."""
    command = [sys.executable, "-m", "tests.simulated.controller", "local"]
    sizes = map(str, (PAIRS, STEPS, PARALLEL))
    subprocess.run(
        [*command, str(folder / "calm"), endpoint, *sizes],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return rows(folder / "calm")


def harried(site: Site, seed: int) -> None:
    """Runs the campaign to its end while every part is killed in turn, at random moments."""
    chance = random.Random(seed)
    parts = [p for p in PARTS for _ in range(KILLS)]
    chance.shuffle(parts)
    site.tend()
    site.run()
    next_harm = time.monotonic() + 15.0
    idle_since = time.monotonic()
    deadline = time.monotonic() + PATIENCE_S
    while not ended(site.made):
        assert time.monotonic() < deadline, (site.killed, (site.folder / "worker.log").read_text())
        if parts and site.controllers() and time.monotonic() > next_harm:
            site.harm(parts.pop())
            next_harm = time.monotonic() + chance.uniform(3.0, 12.0)
        time.sleep(chance.uniform(0.2, 2.0))
        site.tend()
        if site.controllers():
            idle_since = time.monotonic()
        elif time.monotonic() - idle_since > 20.0:
            site.run()
            idle_since = time.monotonic()
    assert not parts, f"the campaign was over before {parts} could be killed"


def test_whatever_is_killed_the_ledger_is_that_of_a_calm_night(tmp_path: Path, host: Host) -> None:
    """Same rows; no step and no paid reply twice; no process and no lock left, here and there."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    with ExitStack() as stack:
        prompts = tmp_path / "prompts"
        endpoint = stack.enter_context(model(prompts))
        calm = undisturbed(tmp_path, endpoint)
        prompts.unlink()
        site = Site(tmp_path, endpoint, host)
        stack.callback(site.close)
        site.open()
        harried(site, seed)
        until_gone(site)
    assert rows(site.runs) == calm
    stored = counted(site.runs, "SELECT count(*) AS n FROM stored.iterations")
    assert stored == len(calm), "a step was done twice"
    calls = counted(site.runs, "SELECT count(*) AS n FROM stored.llm_calls")
    distinct = counted(site.runs, f"SELECT count(DISTINCT ({PLACE})) AS n FROM stored.llm_calls")
    assert calls == distinct, "a reply was paid twice"
    asked = len(prompts.read_text().split())
    lost = site.killed["controller"] * PARALLEL
    assert asked <= calls + lost, "more was asked again than a killed controller had in flight"
    assert not held(site.runs)
    assert not left(str(tmp_path))
    assert not host.commands("^sleep")


def until_gone(site: Site) -> None:
    """Waits for controllers that are still telling the server of their end."""
    deadline = time.monotonic() + 60.0
    while site.controllers() and time.monotonic() < deadline:
        time.sleep(0.5)
