"""A pair on a pool of hosts behind SSH goes on elsewhere, from its last row, when its host dies."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from data.records import Iteration
from data.store import Ledger
from flows import engine
from targets.machines import inventory, link
from targets.machines.ssh import clean
from tasks.asked import Asked, compose
from tests.targets.machines.hosts import Host
from tests.targets.machines.test_spool_campaign import ADD

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]
DEVICE = """
[[device]]
name = "pool"
target = "cpu"
arch = "{arch}"
machines = ["lab1", "lab2"]
"""


@pytest.fixture
def asked(
    tmp_path: Path,
    hosts: tuple[Host, ...],
    warmed: Callable[[Path], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Asked:
    """One operator for a device that two hosts have."""
    for host in hosts[1:]:
        (host.root / "cache").mkdir(parents=True, exist_ok=True)
        warmed(host.root / "cache")
    (tmp_path / "add_relu.py").write_text(ADD)
    pool = DEVICE.format(arch=inventory.device("cpu").arch)
    (tmp_path / "devices.toml").write_text("".join((*map(_machine, hosts[1:]), pool)))
    monkeypatch.chdir(tmp_path)
    operators = (str(tmp_path / "add_relu.py"),)
    runs = str(tmp_path / "runs")
    return Asked(operators=operators, devices=("pool",), steps=2, seed=3, runs=runs)


def _machine(host: Host) -> str:
    reached = host.destination(python=sys.executable)
    return (
        f"[[machine]]\nname = '{reached.name}'\nkind = 'ssh'\nhost = '{reached.host}'\n"
        f"python = '{reached.python}'\nroot = '{reached.root}'\nconfig = '{reached.config}'\n"
    )


def _history(asked: Asked) -> tuple[Iteration, ...]:
    """Of the pair, as the ledger has it."""
    campaign = compose(asked)
    (pair,) = campaign.pairs()
    return Ledger(Path(asked.runs)).history(campaign.run_id, pair.operator.hash, pair.device.name)


def test_a_pair_moves_when_its_host_dies(
    asked: Asked, hosts: tuple[Host, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All processes of a host and its sshd are killed after the first step: the other goes on."""
    monkeypatch.setattr(link, "LOST_S", 3.0)
    killed: list[Host] = []

    def kill() -> None:
        until = time.monotonic() + 400
        while not (rows := _history(asked)) and time.monotonic() < until:
            time.sleep(0.5)
        killed.extend(h for h in hosts if rows and f"lab{h.number}" == rows[0].device.machine)
        for host in killed:
            host.kill_all()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        code = engine.port(asked, "local", as_json=True)
    finally:
        killer.join()
        for host in killed:
            host.start_sshd()
        for host in hosts[1:]:
            clean(host.destination(python=sys.executable))
    history = _history(asked)
    assert code == 0
    assert [i.move.step for i in history] == list(range(len(history)))
    assert history[-1].right
    machines = [i.device.machine for i in history]
    assert machines == sorted(machines, key=lambda m: m != machines[0]), "it never goes back"
    assert len(killed) == 1
    assert machines[-1] != f"lab{killed[0].number}" == machines[0]
