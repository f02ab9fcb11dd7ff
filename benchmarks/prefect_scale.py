"""What Prefect costs and how far one server goes: campaigns of simulated pairs.

    python benchmarks/prefect_scale.py [--pairs 200] [--steps 10] [--parallel 16]
        [--database postgresql|sqlite|URL] [--work 0] [--engine prefect|local|both]

The devices are simulated at the machine seam, the model is scripted behind a real HTTP endpoint;
loop, prompts, agents, ledger and Prefect are the real ones, and nothing is measured. Each engine
runs in a process of its own. A line of JSON an engine:

    pairs, steps    on record afterwards
    failed          flow and task runs that did not complete, or are not on the server's record
    wall_s          the campaign, from the controller's first instruction to its end
    drain_s         what the server needed after that to put all task runs on record
    controller_mb   the controller's largest resident size
    mb_by_tenth     its size after each tenth of the pairs: flat when nothing piles up
    s_by_tenth      seconds of each tenth of the pairs: equal when time is linear
    share           (both engines) Prefect's part of the wall time: 1 - local / prefect
    cpu_s, server_cpu_s   processor time of controller and Prefect server, without the database's
    load            of the machine before, one minute's average

PostgreSQL is started in a folder of its own from the programs of Debian's package (as the user
`postgres` when this is root) and ended afterwards, as is the server.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from data import views
from tasks import served
from tests.simulated.servers import model, postgresql, prefect_server

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient

ENGINES = {"prefect": ("prefect",), "local": ("local",), "both": ("local", "prefect")}
DRAINED_S = 600.0


def main() -> None:
    """Runs the engines one after the other and prints what they cost."""
    asked = arguments()
    spent: dict[str, float] = {}
    for engine in ENGINES[asked.engine]:
        with ExitStack() as stack:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kforge-scale-")))
            row = measured(engine, asked, root, stack)
        spent[engine] = row["wall_s"]
        if len(spent) == 2:
            row["share"] = round(1 - spent["local"] / spent["prefect"], 4)
        print(json.dumps(row), flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=10, help="a pair, the confirmation counted")
    parser.add_argument("--parallel", type=int, default=16)
    parser.add_argument("--database", default="postgresql", help="postgresql, sqlite or a URL")
    parser.add_argument("--work", type=float, default=0.0, help="seconds that a step works")
    parser.add_argument("--engine", choices=ENGINES, default="prefect")
    return parser.parse_args()


def measured(
    engine: str, asked: argparse.Namespace, root: Path, stack: ExitStack
) -> dict[str, Any]:
    """The figures of one engine."""
    load = os.getloadavg()[0]
    runs, endpoint = root / "runs", stack.enter_context(model(root / "prompts"))
    more = {"KFORGE_SIMULATED_STEP_S": str(asked.work)}
    if engine == "prefect":
        database = stack.enter_context(database_of(asked.database, root))
        more["PREFECT_API_URL"] = stack.enter_context(prefect_server(root, database))
        more["PREFECT_HOME"] = str(root / "client")
    sizes = [asked.pairs, asked.steps, asked.parallel]
    command = [sys.executable, "-m", "tests.simulated.controller", engine, runs, endpoint]
    done = subprocess.run(
        [*command, *map(str, sizes)],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    row = {"engine": engine, "database": asked.database, **told, "load": round(load, 2)}
    row |= recorded(runs)
    if engine == "prefect":
        row |= asyncio.run(drained(more["PREFECT_API_URL"], row))
        row["server_cpu_s"] = round(server_cpu_s(root), 1)
    return row


def server_cpu_s(root: Path) -> float:
    """Processor time of the Prefect server so far; the database's is not in it."""
    known = served.recorded(root)
    assert known is not None
    fields = Path(f"/proc/{known.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def database_of(asked: str, root: Path) -> Iterator[str]:
    """The URL that the server is given."""
    if asked == "postgresql":
        with postgresql() as url:
            yield url
    elif asked == "sqlite":
        yield f"sqlite+aiosqlite:///{root / 'prefect.db'}"
    else:
        yield asked


def recorded(runs: Path) -> dict[str, int]:
    """What the ledger holds."""
    (row,) = views.query(
        runs,
        "SELECT count(*)::INT AS steps, count(DISTINCT (operator_hash, device))::INT AS pairs"
        " FROM iterations",
    ).to_pylist()
    return dict(row)


async def drained(url: str, row: dict[str, Any]) -> dict[str, Any]:
    """Waits until the server has recorded all; how long that took, and what did not complete."""
    from prefect.client.orchestration import PrefectClient  # noqa: PLC0415

    began = time.monotonic()
    async with PrefectClient(url) as client:
        states: Counter[str] = Counter()
        while time.monotonic() - began < DRAINED_S:
            states = await tallied(client)
            if states["task COMPLETED"] >= expected(row) and not states["task RUNNING"]:
                break
            await asyncio.sleep(0.5)
    bad = {k: n for k, n in states.items() if not k.endswith("COMPLETED")}
    lost = max(0, expected(row) - states["task COMPLETED"])
    return {
        "drain_s": round(time.monotonic() - began, 1),
        "failed": sum(bad.values()) + lost,
        "runs": dict(states),
    }


async def tallied(client: "PrefectClient") -> Counter[str]:
    """How many flow and task runs are in each state."""
    found: Counter[str] = Counter()
    for kind, path in (("flow", "/flow_runs/count"), ("task", "/task_runs/count")):
        for state in ("COMPLETED", "RUNNING", "PENDING", "FAILED", "CRASHED", "CANCELLED"):
            body = {f"{kind}_runs": {"state": {"type": {"any_": [state]}}}}
            answer = await client._client.request("POST", path, json=body)  # noqa: SLF001
            if count := answer.raise_for_status().json():
                found[f"{kind} {state}"] = count
    return found


def expected(row: dict[str, Any]) -> int:
    """Task runs: one that enters each pair and, in campaigns that are not huge, one a step."""
    from flows.pair import FINE_PAIRS  # noqa: PLC0415

    return row["pairs"] + (row["steps"] if row["pairs"] <= FINE_PAIRS else 0)


if __name__ == "__main__":
    main()
