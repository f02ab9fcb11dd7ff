"""The contract of machines, and the local one's server, leases and ends."""

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import MachineError
from data.records import Device, Operator
from targets.machines import local
from targets.machines.local import LocalMachine
from targets.remote.lease import holders
from tests.targets.machines.contract import MachineContract

CPU = Device(name="cpu", target="cpu", vendor="cpu", arch="any")
OPERATOR = Operator(name="any", source="")
SOURCE = """
from kforge_launch import kernels
K = kernels('extern "C" void f(float* y) { y[0] = 1; }')
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMachine]:
    folder = tmp_path_factory.mktemp("machine")
    machine = LocalMachine(folder / "cache", locks=folder / "locks")
    yield machine
    machine.close()


class TestLocal(MachineContract):
    """The machine at hand."""

    @pytest.fixture
    def there(self, tmp_path: Path) -> Path:
        (tmp_path / "there").mkdir()
        return tmp_path / "there"


async def test_lease_is_exclusive(machine: LocalMachine) -> None:
    """Two holders of one device never overlap; another device is not held up."""
    inside, most = 0, 0

    async def hold(device: Device) -> None:
        nonlocal inside, most
        async with machine.lease(device):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.05)
            inside -= 1

    await asyncio.gather(*(hold(CPU) for _ in range(4)))
    assert most == 1
    async with machine.lease(CPU):
        await asyncio.wait_for(hold(replace(CPU, name="card", target="apple")), 5)


async def test_lease_holds_across_machines_objects_and_names(
    machine: LocalMachine, tmp_path: Path
) -> None:
    """The lock file is the truth: another process, or another name of the device, waits too."""
    other = LocalMachine(tmp_path, locks=machine._locks)
    async with machine.lease(CPU):
        waiting = other.lease(replace(CPU, name="alias"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting.__aenter__(), 0.2)
    async with other.lease(CPU):
        pass


async def test_lease_is_given_back_after_an_error(machine: LocalMachine) -> None:
    """A failure inside does not keep the device."""
    with pytest.raises(ValueError, match="inside"):
        async with machine.lease(CPU):
            raise ValueError("inside")
    async with asyncio.timeout(1), machine.lease(CPU):
        pass


async def test_foreign_lock_folder_is_refused(tmp_path: Path) -> None:
    """A link in the place of the lock folder could hand the lock to somebody else."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "locks").symlink_to(tmp_path / "elsewhere")
    machine = LocalMachine(tmp_path, locks=tmp_path / "locks")
    with pytest.raises(MachineError, match="no folder with mode 1777"):
        async with machine.lease(CPU):
            pass


async def test_requests_share_one_server_and_survive_its_death(machine: LocalMachine) -> None:
    """Parallel requests are answered by one process; when it is killed, the next starts another."""
    built = await asyncio.gather(*(machine.build(OPERATOR, SOURCE, CPU) for _ in range(3)))
    assert all(b.ok for b in built)
    first = machine._server
    assert first is not None
    os.kill(first._process.pid, signal.SIGKILL)
    assert (await machine.build(OPERATOR, SOURCE, CPU)).ok
    assert machine._server is not first


async def test_deadline_and_error_are_the_worlds_fault(machine: LocalMachine) -> None:
    """A job that does not end in time, or cannot be done, raises; the server stays."""
    with pytest.raises(MachineError, match="unknown op 'nonsense'"):
        await machine.judge("nonsense", {}, 30.0)
    hanging = {
        "operator": OPERATOR,
        "candidate_source": "import kforge_launch, time; time.sleep(50)",
        "device": CPU,
    }
    with pytest.raises(MachineError, match="did not end 'build' within 1 s"):
        await machine.judge("build", hanging, 1.0)
    server = machine._server
    assert (await machine.build(OPERATOR, SOURCE, CPU)).ok
    assert machine._server is server


async def test_server_that_cannot_start_is_the_worlds_fault(tmp_path: Path) -> None:
    """A server that dies twice is given up, with its exit status in one line."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "peaks").write_text("no folder")
    machine = LocalMachine(tmp_path / "cache", locks=tmp_path)
    with pytest.raises(MachineError, match=r"judge server ended with status 1: .*peaks"):
        await machine.probe(CPU)
    machine.close()


async def test_nothing_is_left_after_close(tmp_path: Path) -> None:
    """Close ends the server; it may be called twice."""
    machine = LocalMachine(tmp_path / "cache", locks=tmp_path)
    assert (await machine.build(OPERATOR, SOURCE, CPU)).ok
    assert machine._server is not None
    process = machine._server._process
    machine.close()
    machine.close()
    assert process.poll() == 0


async def test_a_device_that_is_never_given_back_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who hangs under a lease loses it at its deadline; the record beats until then."""
    monkeypatch.setattr(local, "HOLD_S", 0.5)
    monkeypatch.setattr(local, "BEAT_S", 0.05)
    machine = LocalMachine(tmp_path, locks=tmp_path / "locks")
    beats = set()

    async def hang() -> None:
        async with machine.lease(CPU):
            while True:
                beats.add(holders(tmp_path / "locks")["cpu-0"].beat)
                await asyncio.sleep(0.1)

    with pytest.raises(MachineError, match="cpu was held for more than"):
        await hang()
    assert len(beats) > 2
    assert not holders(tmp_path / "locks")
