"""SSH machines on real hosts: the contract, who the host is, and what goes wrong on the way."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import MachineError
from data.records import Device
from targets.machines.remote import RemoteMachine
from targets.machines.ssh import Destination, clean, connect, ssh_machine
from tests.targets.machines.contract import SLACK_S, MachineContract
from tests.targets.machines.hosts import Host

pytestmark = pytest.mark.net
CPU = Device(name="bench", target="bench", vendor="any", arch="any")


@pytest.fixture(scope="module")
def machine(hosts: tuple[Host, ...]) -> Iterator[RemoteMachine]:
    machine = ssh_machine(hosts[0].destination(python=sys.executable), scope="tests")
    yield machine
    machine.close()


class TestSsh(MachineContract):
    """A host behind a cable."""

    @pytest.fixture
    def there(self, tmp_path: Path) -> Path:
        (tmp_path / "there").mkdir()
        return tmp_path / "there"


def reach(host: Host, **options: object) -> RemoteMachine:
    return ssh_machine(host.destination(**options), scope="tests")  # type: ignore[arg-type]


async def refused(machine: RemoteMachine, words: str, *, within_s: float = 25.0) -> MachineError:
    """The error of a machine that must not be used, within the time that may take."""
    started = time.monotonic()
    with pytest.raises(MachineError, match=words) as caught:
        await machine.run(("true",), within_s)
    assert time.monotonic() - started < within_s + SLACK_S
    await asyncio.to_thread(machine.close)
    assert "\n" not in str(caught.value)
    return caught.value


async def test_an_unknown_host_is_refused_with_its_fingerprint(hosts: tuple[Host, ...]) -> None:
    """The message shows the key and how to trust it; nothing was asked of the host."""
    host = hosts[1]
    host.known_hosts.write_text("")
    try:
        error = await refused(reach(host), "is unknown: ssh-ed25519 SHA256:")
    finally:
        host.trust()
    shown = subprocess.run(
        ["ssh-keygen", "-lf", f"{host.host_key}.pub"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert shown in str(error)
    assert f">> {host.known_hosts}" in str(error)
    assert not error.retryable


async def test_a_changed_host_key_is_refused_loudly(hosts: tuple[Host, ...]) -> None:
    """Another key than the one on record is never accepted and never tried again."""
    host = hosts[1]
    host.kill_sshd()
    host.new_host_key()
    host.start_sshd()
    try:
        error = await refused(reach(host), "HAS CHANGED to ssh-ed25519 SHA256:")
    finally:
        host.trust()
    assert not error.retryable
    machine = reach(host, python=sys.executable)
    assert (await machine.run(("true",), 30)).code == 0
    machine.close()


async def test_a_revoked_key_is_refused(hosts: tuple[Host, ...]) -> None:
    """A line that revokes the key wins over one that knows it."""
    host = hosts[1]
    known = host.known_hosts.read_text()
    host.known_hosts.write_text(known + f"@revoked * {known.partition(' ')[2]}")
    try:
        assert not (await refused(reach(host), "is revoked")).retryable
    finally:
        host.trust()


async def test_a_refused_key_names_user_and_host(hosts: tuple[Host, ...], tmp_path: Path) -> None:
    """A key that the host does not know cannot pass by trying again."""
    key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    host = hosts[1]
    stranger = Host.__new__(Host)
    stranger.__dict__.update(host.__dict__, key=key)
    error = await refused(reach(stranger), f"root@{host.address} refused all 1 keys")
    assert not error.retryable
    host.destination()


async def test_a_key_with_a_passphrase_asks_for_the_agent(
    hosts: tuple[Host, ...], tmp_path: Path
) -> None:
    """Nobody is asked for a passphrase at night: the message says ssh-add."""
    key = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "word", "-f", str(key)], check=True)
    stranger = Host.__new__(Host)
    stranger.__dict__.update(hosts[1].__dict__, key=key)
    await refused(reach(stranger), "has a passphrase: add it with ssh-add")
    hosts[1].destination()


async def test_a_jump_host_is_passed_through(hosts: tuple[Host, ...]) -> None:
    """ProxyJump of the configuration is followed, each hop's key checked."""
    first, last = hosts[0], hosts[0]
    inner = first.destination(python=sys.executable)
    assert inner.config is not None
    text = inner.config.read_text()
    beyond = text.replace(f"Host {first.name}", "Host beyond") + f"  ProxyJump {first.name}\n"
    config = first.folder / "jump_config"
    config.write_text(f"{text}\n{beyond}")
    machine = ssh_machine(replace(inner, host="beyond", config=config), scope="tests")
    done = await machine.run(("echo", "through"), 30)
    await asyncio.to_thread(machine.close)
    assert done.out == b"through\n"
    assert last.processes()


CARRY = """
import select, socket, sys, os
far = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    for end in select.select([0, far], [], [])[0]:
        data = os.read(0, 1 << 16) if end == 0 else far.recv(1 << 16)
        if not data: sys.exit()
        far.sendall(data) if end == 0 else os.write(1, data)
"""


async def test_a_command_of_the_users_carries_the_bytes(
    hosts: tuple[Host, ...], tmp_path: Path
) -> None:
    """ProxyCommand is followed and ends with the link; where it fails, its own words are told."""
    program = tmp_path / "carry-4331.py"
    program.write_text(CARRY)
    way = f"ProxyCommand {sys.executable} {program} %h %p"
    machine = ssh_machine(
        hosts[0].destination(python=sys.executable, options=(way,)), scope="tests"
    )
    assert (await machine.run(("echo", "through"), 30)).out == b"through\n"
    assert carriers(program)
    await asyncio.to_thread(machine.close)
    assert not carriers(program)
    try:
        await refused(reach(hosts[0], options=("ProxyCommand no-4332",)), "no-4332: not found")
    finally:
        hosts[0].destination()


def carriers(program: Path) -> list[int]:
    """Processes that run it."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [int(line.parent.name)] if str(program).encode() in line.read_bytes() else []
    return found


@pytest.mark.parametrize(
    ("greeting", "words"),
    [(b"", "exchanging keys"), (b"SSH-2.0-Silent\r\n", "exchanging keys")],
)
async def test_a_host_that_accepts_and_never_answers_costs_its_deadline(
    greeting: bytes, words: str, tmp_path: Path
) -> None:
    """Neither silence at once nor after the banner holds anybody longer than the deadline."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    taken.append(server.accept()[0])
                    taken[-1].sendall(greeting)

        threading.Thread(target=accept, daemon=True).start()
        port = server.getsockname()[1]
        destination = Destination(name="silent", host=f"root@127.0.0.1:{port}", config=tmp_path)
        with pytest.raises(MachineError, match=rf"silent .*no answer within 2 s while {words}"):
            await asyncio.to_thread(connect, replace(destination, config=tmp_path / "no"), (), 2.0)
        machine = ssh_machine(replace(destination, config=tmp_path / "no"), scope="tests")
        await refused(machine, "silent", within_s=2.0)
        for sock in taken:
            sock.close()


async def test_an_unreachable_host_is_named_with_the_cause(tmp_path: Path) -> None:
    """A closed port and a name that nobody knows are the world's faults; the last never passes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    closed = Destination(name="closed", host=f"root@127.0.0.1:{port}", config=tmp_path / "no")
    error = await refused(
        ssh_machine(closed, scope="t"), r"closed .*Connection refused while conne"
    )
    assert error.retryable
    nowhere = Destination(name="nowhere", host="no-such-host.invalid", config=tmp_path / "no")
    await refused(ssh_machine(nowhere, scope="t"), r"nowhere .*while connecting to no-such-host")


async def test_a_missing_or_hanging_python_is_told_apart(
    hosts: tuple[Host, ...], tmp_path: Path
) -> None:
    """A wrong `python` never passes; one that hangs costs the deadline."""
    error = await refused(reach(hosts[0], python="/no/python"), "/no/python did not start")
    assert not error.retryable
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    await refused(reach(hosts[0], python=str(slow)), "lab0", within_s=3.0)


async def test_a_full_remote_disk_is_the_worlds_fault(hosts: tuple[Host, ...]) -> None:
    """No space for the code, then none for a job: both are named, with the folder."""
    host = hosts[2]
    disk = host.mounted("small", "2m")
    try:
        root = str(host.folder / "small" / "root")
        destination = replace(host.destination(python=sys.executable), root=root)
        (disk / "ballast").write_bytes(b"x" * (2 << 19))
        machine = ssh_machine(destination, scope="tests")
        await refused(machine, "No space left on device")
        host.enter("mount", "-o", "remount,size=40m", str(host.folder / "small"))
        machine = ssh_machine(destination, scope="tests")
        assert (await machine.run(("true",), 30)).code == 0
        with suppress(OSError):
            (disk / "rest").write_bytes(b"x" * (40 << 20))
        big = host.folder / "big"
        big.write_bytes(b"x" * (1 << 20))
        with pytest.raises(MachineError, match=r"cannot write .*No space left on device"):
            await machine.put(big, host.folder / "small" / "file")
        (disk / "rest").unlink()
        assert (await machine.run(("true",), 30)).code == 0
        await asyncio.to_thread(machine.close)
        await asyncio.to_thread(clean, destination)
    finally:
        host.enter("umount", "-l", str(host.folder / "small"))


SKEW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(which, now);
    if (which == CLOCK_REALTIME) now->tv_sec += 3600;
    return status;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to bend a clock")
async def test_a_clock_that_is_an_hour_off_changes_nothing(
    hosts: tuple[Host, ...], tmp_path: Path
) -> None:
    """Deadlines are ours and relative: skew is seen by facts, by nothing else."""
    (tmp_path / "skew.c").write_text(SKEW)
    library = tmp_path / "skew.so"
    subprocess.run(["gcc", "-shared", "-o", library, tmp_path / "skew.c"], check=True)
    wrapper = tmp_path / "python"
    start = f'export LD_PRELOAD={library}\nexec {sys.executable} "$@"\n'
    wrapper.write_text(f"#!/bin/sh\n{start}")
    wrapper.chmod(0o755)
    destination = replace(
        hosts[2].destination(python=str(wrapper)), root=str(hosts[2].folder / "skewed")
    )
    machine = ssh_machine(destination, scope="tests")
    told = await machine.facts(30)
    assert told["clock_s"] - time.time() == pytest.approx(3600, abs=30)
    assert (await machine.run(("sleep", "30"), 1.0)).timed_out
    assert (await machine.run(("echo", "right"), 30.0)).out == b"right\n"
    await asyncio.to_thread(machine.close)
    await asyncio.to_thread(clean, destination)


async def test_a_login_script_that_talks_does_no_harm(hosts: tuple[Host, ...]) -> None:
    """What a host prints before our code starts is passed over."""
    machine = reach(hosts[0], python=f"echo '{{welcome}}' && {sys.executable}")
    with pytest.raises(MachineError, match="did not start"):
        await machine.run(("true",), 20)  # a command is one word: no shell reads it
    await asyncio.to_thread(machine.close)


async def test_reaping_ends_the_resident_and_what_was_lost(hosts: tuple[Host, ...]) -> None:
    """A busy resident is left alone; an idle one is ended, and a lost job's processes with it."""
    host = hosts[2]
    destination = host.destination(python=sys.executable)
    machine = ssh_machine(destination, scope="tests")
    running = asyncio.ensure_future(machine.run(("sleep", "4328"), 60))
    while not host.commands("sleep 4328"):
        await asyncio.sleep(0.05)
    assert (await asyncio.to_thread(clean, destination))["busy"] == 1
    host.kill_sshd()
    for pid in host.processes():
        if b"targets.machines.resident" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(machine.close)
    with pytest.raises(MachineError):
        await running
    host.start_sshd()
    assert host.commands("sleep 4328")
    told = await asyncio.to_thread(clean, destination)
    assert told["jobs"] >= 1
    assert not host.commands("sleep|targets.machines.resident")


async def test_a_controller_that_goes_gives_its_lease_back(hosts: tuple[Host, ...]) -> None:
    """Leases exclude controllers from each other; a closed link frees the device in seconds."""
    first, second = (reach(hosts[2], python=sys.executable) for _ in range(2))
    context = first.lease(CPU)
    await context.__aenter__()
    waiting = second.lease(CPU)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waiting.__aenter__(), 0.5)
    await asyncio.to_thread(first.close)
    async with asyncio.timeout(20), second.lease(CPU):
        pass
    with suppress(RuntimeError, MachineError):
        await context.__aexit__(None, None, None)
    for machine in (first, second):
        await asyncio.to_thread(machine.close)
