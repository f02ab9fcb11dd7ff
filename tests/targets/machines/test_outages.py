"""What breaks at night: a cable, an sshd, a host, the controller. No job is lost or doubled."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from data.errors import MachineError
from data.records import Device
from targets.machines import link
from targets.machines.remote import RemoteMachine
from targets.machines.ssh import clean, ssh_machine
from tests.targets.machines.hosts import Host

pytestmark = [pytest.mark.net, pytest.mark.timeout(240)]
JOB = """
import sys, time
time.sleep(2)
print("x" * 100_000)
with open(sys.argv[1], "a") as log:
    log.write(sys.argv[2] + "\\n")
"""
CUT_S = 20.0


@pytest.fixture
def machines(hosts: tuple[Host, ...]) -> Iterator[list[RemoteMachine]]:
    made = [ssh_machine(h.destination(python=sys.executable), scope="tests") for h in hosts]
    yield made
    for host, machine in zip(hosts, made, strict=True):
        machine.close()
        until = time.monotonic() + 20
        while host.commands("targets|python -c") and time.monotonic() < until:
            clean(host.destination(python=sys.executable))
            time.sleep(0.2)
        assert not host.commands("targets|python -c")


async def _ended(machine: RemoteMachine, log: Path, job: str, limit: asyncio.Semaphore) -> str:
    """The job's result; faults of the world are tried again."""
    for _ in range(8):
        async with limit:
            try:
                done = await machine.run((sys.executable, "-c", JOB, str(log), job), 60.0)
            except MachineError:
                await asyncio.sleep(1.0)
                continue
        assert done.code == 0, done
        return job
    raise AssertionError(f"{job} was never done")


async def _trouble(hosts: tuple[Host, ...]) -> None:
    """A cable is out for 20 s, an sshd dies, a host is started again."""
    await asyncio.sleep(3.0)
    hosts[0].cut()
    hosts[1].kill_sshd()
    await asyncio.to_thread(hosts[2].reboot)
    await asyncio.sleep(4.0)
    hosts[1].start_sshd()
    await asyncio.sleep(CUT_S - 4.0)
    hosts[0].mend()


async def test_every_job_ends_exactly_once_whatever_breaks(
    hosts: tuple[Host, ...], machines: list[RemoteMachine], tmp_path: Path
) -> None:
    """60 jobs over three hosts, each of which fails in its own way; no orphan, flat memory."""
    limits = [asyncio.Semaphore(4) for _ in hosts]
    for machine in machines:
        await machine.run(("true",), 60.0)
    before = _resident_mib()
    async with asyncio.TaskGroup() as group:
        group.create_task(_trouble(hosts))
        jobs = [
            group.create_task(
                _ended(machines[n % 3], tmp_path / f"log{n % 3}", f"job{n}", limits[n % 3])
            )
            for n in range(60)
        ]
    expected = {f"job{n}": 1 for n in range(60)}
    assert Counter(job.result() for job in jobs) == expected
    lines = [line for n in range(3) for line in (tmp_path / f"log{n}").read_text().split()]
    assert Counter(lines) == expected
    assert not [command for host in hosts for command in host.commands("time.sleep")]
    assert _resident_mib() - before < 30


def _resident_mib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


async def test_a_short_cut_costs_no_job(
    hosts: tuple[Host, ...], machines: list[RemoteMachine]
) -> None:
    """A job that ends while the cable is out is answered when it is back, not done again."""
    await machines[0].run(("true",), 60.0)
    running = asyncio.ensure_future(machines[0].run(("sh", "-c", "sleep 3; date +%s%N"), 60.0))
    await asyncio.sleep(1.0)
    hosts[0].cut()
    await asyncio.sleep(CUT_S)
    hosts[0].mend()
    mended = time.time_ns()
    done = await running
    assert done.code == 0
    assert mended - int(done.out) > (CUT_S - 5) * 1e9


async def test_a_host_that_stays_away_is_given_up(
    hosts: tuple[Host, ...], machines: list[RemoteMachine]
) -> None:
    """Within the deadline and 5 s, with the host and the cause."""
    await machines[0].run(("true",), 60.0)
    running = asyncio.ensure_future(machines[0].run(("sleep", "4329"), 8.0))
    await asyncio.sleep(0.5)
    hosts[0].cut()
    started = time.monotonic()
    try:
        with pytest.raises(MachineError, match=r"^lab0: "):
            await running
        assert time.monotonic() - started < 8.0 + 5.0
    finally:
        hosts[0].mend()
    until = time.monotonic() + 15
    while hosts[0].commands("sleep 4329") and time.monotonic() < until:
        await asyncio.sleep(0.2)
    assert not hosts[0].commands("sleep 4329")


async def test_a_host_whose_resident_stands_still_is_given_up(
    hosts: tuple[Host, ...], machines: list[RemoteMachine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lets us in again and again and never answers: a job that may queue all night fails too."""
    monkeypatch.setattr(link, "PING_S", 0.5)
    monkeypatch.setattr(link, "SILENT_S", 2.0)
    monkeypatch.setattr(link, "LOST_S", 6.0)
    device = Device(name="still", target="bench", vendor="any", arch="any")
    await machines[0].run(("true",), 60.0)
    (still,) = [pid for pid in hosts[0].processes() if _is_resident(pid)]
    os.kill(still, signal.SIGSTOP)
    started = time.monotonic()
    try:
        with pytest.raises(MachineError, match=r"^lab0: no answer since 2 s"):
            async with machines[0].turn(device):
                await machines[0].run(("true",), 60.0)
        assert time.monotonic() - started < 20.0
    finally:
        os.kill(still, signal.SIGCONT)
    assert (await machines[0].run(("true",), 60.0)).code == 0


def _is_resident(pid: int) -> bool:
    with suppress(OSError):
        return b"targets.machines.resident" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.mark.parametrize("ended", [False, True])
def test_a_killed_controller_finds_its_job_again(
    hosts: tuple[Host, ...], machines: list[RemoteMachine], ended: bool
) -> None:
    """The restarted one gets the answer of the job that was begun, whether it runs or is over."""
    host, seconds = hosts[1], "8" if ended else "15"
    destination = host.destination(python=sys.executable)
    words = [sys.executable, "-m", "tests.targets.machines.controller"]
    words += [destination.host, str(destination.config), str(host.root), seconds]
    first = subprocess.Popen(words, stdout=subprocess.PIPE)
    (job,) = _wait(lambda: list((host.root / "jobs").glob("*-0")))
    begun = job.stat().st_ino
    _wait(lambda: host.commands("targets.remote.warm|targets.remote.serve"))
    first.send_signal(signal.SIGKILL)
    first.communicate()
    if ended:
        _wait((job / "result.json").exists)
        written = (job / "result.json").stat().st_mtime_ns
    again = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(again.stdout)["ok"], again.stdout
    if ended:
        assert not job.exists() or (job / "result.json").stat().st_mtime_ns == written
    else:
        assert not job.exists() or job.stat().st_ino == begun
    assert "attached" not in again.stderr


def _wait(look: object) -> list[Path]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if found := look():  # type: ignore[operator]
            return found  # type: ignore[no-any-return]
        time.sleep(0.05)
    raise AssertionError("it never came")
