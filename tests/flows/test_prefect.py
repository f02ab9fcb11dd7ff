"""The campaign in Prefect: names, tags, artifacts, failures. Needs a server, so not by default."""

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from data.records import Pair
from data.store import Ledger
from flows import server
from tasks import served
from tasks.asked import Asked, compose
from tasks.campaign import Campaign, store_campaign
from tasks.claim import claimed
from tests.data.samples import confirmed

pytestmark = [pytest.mark.prefect, pytest.mark.e2e, pytest.mark.timeout(300)]

KFORGE = Path(sys.executable).with_name("kforge")
ROOT = Path(__file__).parents[2]
SOURCE = """'''{name}'''
import torch
FAMILY = "map"
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x)
def get_inputs(): return [torch.randn(4)]
def get_init_inputs(): return []
"""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the server holds of one campaign."""

    names: dict[str, str]
    """State by name of the flow run."""
    tags: dict[str, set[str]]
    artifacts: set[str]
    table: str


def campaign(runs: Path, folder: Path, epoch: str) -> Campaign:
    """Operators a and b on the CPU, all of whose steps are on record already."""
    files = [folder / f"{name}.py" for name in "ab"]
    for file in files:
        file.write_text(SOURCE.format(name=file.stem))
    made = compose(Asked(operators=tuple(map(str, files)), runs=str(runs), epoch=epoch))
    store_campaign(made)
    for pair in made.pairs():
        Ledger(runs).append(
            confirmed(
                0,
                1.5,
                run_id=made.run_id,
                epoch=epoch,
                operator=pair.operator,
                device=pair.device,
                contract=pair.contract,
            )
        )
    return made


def port(runs: Path, folder: Path, epoch: str) -> subprocess.CompletedProcess[str]:
    files = [str(folder / f"{name}.py") for name in "ab"]
    command = [
        str(KFORGE),
        "port",
        *files,
        "--device",
        "cpu",
        "--runs",
        str(runs),
        "--epoch",
        epoch,
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)


async def look(runs: Path, run_id: str) -> Seen:
    """Asks the API of the folder's server."""
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

    known = served.recorded(runs)
    assert known is not None
    async with PrefectClient(known.url) as client:
        flow_runs = [
            r for r in await client.read_flow_runs() if r.parameters.get("run_id") == run_id
        ]
        wanted = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[r.id for r in flow_runs]))
        artifacts = await client.read_artifacts(artifact_filter=wanted)
    return Seen(
        names={r.name: str(r.state_name) for r in flow_runs},
        tags={r.name: set(r.tags) for r in flow_runs},
        artifacts={str(a.key) for a in artifacts},
        table=next((str(a.data) for a in artifacts if a.key == "speedups"), ""),
    )


def test_a_campaign_is_one_flow_run_a_pair_with_its_artifacts(runs: Path, tmp_path: Path) -> None:
    """Names, tags and artifact keys are what people look for in the UI."""
    made = campaign(runs, tmp_path, "names")
    done = port(runs, tmp_path, "names")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[:4] == ["a", "cpu", "FASTER", "eager"]
    seen = asyncio.run(look(runs, made.run_id))
    parent = "a, b on cpu, names"
    assert seen.names == {parent: "Completed", "a@cpu": "Completed", "b@cpu": "Completed"}
    assert seen.tags["a@cpu"] == {"cpu", "map", "kforge", made.run_id}
    assert seen.tags[parent] == {"kforge", made.run_id}
    kinds = ("progress", "iterations", "best")
    assert seen.artifacts == {"speedups", *(f"{k}-{o}-cpu" for k in kinds for o in "ab")}


def test_stderr_is_progress_and_stdout_the_result(runs: Path, tmp_path: Path) -> None:
    """Prefect's own logs spoil neither."""
    campaign(runs, tmp_path, "quiet")
    done = port(runs, tmp_path, "quiet")
    said = done.stderr.splitlines()
    assert "no LLM is used" in said[0]
    assert all(line.startswith(("campaign ", "a@cpu", "b@cpu", "[")) for line in said)
    assert len(done.stdout.splitlines()) == 3


def test_one_failed_pair_does_not_fail_the_others(runs: Path, tmp_path: Path) -> None:
    """The world fails for one: exit 1, its name on stderr, the other's row in the table."""
    made = campaign(runs, tmp_path, "held")
    held: Pair = made.pairs()[0]
    with claimed(runs, held):
        done = port(runs, tmp_path, "held")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("kforge: 1 of 2 pairs failed; a@cpu: ")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == ["b"]
    seen = asyncio.run(look(runs, made.run_id))
    assert seen.names["a@cpu"] == "Failed"
    assert seen.names["b@cpu"] == "Completed"
    assert "'b'" in seen.table.replace('"', "'")


def test_a_retried_parent_gets_each_pair_its_own_result(runs: Path, tmp_path: Path) -> None:
    """Flows that are gathered directly come back swapped; behind a task they must not."""
    made = campaign(runs, tmp_path, "retried")
    known = served.recorded(runs)
    assert known is not None
    done = subprocess.run(
        [sys.executable, "-m", "tests.flows.retried", runs, made.run_id],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={
            **os.environ,
            "PREFECT_API_URL": known.url,
            "PREFECT_HOME": str(runs / ".prefect" / "home"),
            "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
        },
    )
    assert done.stdout.splitlines()[-1] == "{'b': 'b', 'a': 'a'}"


def test_a_server_that_runs_is_used_again(runs: Path) -> None:
    """The second campaign starts none, and says nothing of one."""
    before = served.recorded(runs)
    said: list[str] = []
    url = server.ensure(runs, say=said.append)
    assert before is not None
    assert (url, said) == (before.url, [])
    assert served.recorded(runs) == before


def test_the_server_keeps_to_itself(runs: Path) -> None:
    """Loopback only; its pages call its own API; no analytics, no second UI."""
    import json
    import urllib.request

    known = served.recorded(runs)
    assert known is not None
    with urllib.request.urlopen(f"{known.page}/ui-settings") as answer:
        settings = json.load(answer)
    assert settings["api_url"] == known.url
    listening = Path("/proc/net/tcp").read_text()
    assert f"0100007F:{known.port:04X}" in listening
    assert f"00000000:{known.port:04X}" not in listening
