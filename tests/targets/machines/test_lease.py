"""Leases between processes and users of one host: order, death, foreign hands."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import MachineError
from targets.remote import lease as leases
from targets.remote import occupants as foreign
from targets.remote.lease import Lease, holders
from targets.remote.offshoots import born

HOLD = """
import subprocess, sys, time
from pathlib import Path
from targets.remote import lease
held = lease.Lease("gpu-0", "training", folder=Path(sys.argv[1]))
assert held.take()
worker = subprocess.Popen(
    ["sleep", "4324"], env={lease.HOLDER: lease.mark()}, stdout=subprocess.DEVNULL
)
print(worker.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "leases"


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that other users can enter, where leases lie: pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="kforge-", dir=leases.FOLDER.parent) as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture
def other(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the device, with a worker of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def test_the_queue_is_first_come_first_served(folder: Path) -> None:
    """Whoever asked first gets it first, however often the others look."""
    first, second, third = (Lease("gpu-0", str(n), folder=folder) for n in range(3))
    assert [third.take(), second.take(), first.take()] == [False, False, True]
    first.release()
    assert [third.take(), second.take()] == [False, True]
    second.release()
    assert third.take()
    third.release()


def test_who_gives_up_is_passed_over(folder: Path) -> None:
    """A place in the queue that was given back holds nobody up."""
    first, second = Lease("gpu-0", "a", folder=folder), Lease("gpu-0", "b", folder=folder)
    first.release()
    first.release()
    assert second.take()
    second.release()


def test_devices_do_not_wait_for_each_other(folder: Path) -> None:
    """Two devices of a host are two queues."""
    one, two = Lease("gpu-0", "a", folder=folder), Lease("gpu-1", "b", folder=folder)
    assert one.take()
    assert two.take()
    one.release()
    two.release()


def test_the_holder_is_named(folder: Path, other: subprocess.Popen[str]) -> None:
    """Somebody who waits can tell for whom."""
    assert other.stdout is not None
    other.stdout.readline()
    waiting = Lease("gpu-0", "mine", folder=folder)
    assert not waiting.take()
    assert f"pid {other.pid} (training)" in str(waiting.holder())
    assert holders(folder)["gpu-0"].user == leases.user()
    waiting.release()


def test_a_dead_holder_is_followed_safely(folder: Path, other: subprocess.Popen[str]) -> None:
    """The device of a killed process is free at once, and nothing that it started still runs."""
    assert other.stdout is not None
    worker = int(other.stdout.readline())
    waiting = Lease("gpu-0", "mine", folder=folder)
    assert not waiting.take()
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert born(worker)
    assert waiting.take()
    assert not born(worker)
    assert holders(folder)["gpu-0"].pid == os.getpid()
    waiting.release()
    assert not holders(folder)


def test_a_dead_waiter_holds_nobody_up(folder: Path) -> None:
    """The place of a process that was killed is cleared away."""
    code = HOLD.replace("assert held.take()", "print('waits', flush=True); time.sleep(60)")
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    mine = Lease("gpu-0", "mine", folder=folder)
    assert not mine.take()
    process.kill()
    process.communicate()
    assert mine.take()
    mine.release()


def test_a_waiter_is_not_taken_for_dead_while_it_enters(folder: Path) -> None:
    """A place shows only once it is locked: no file without a lock is ever seen."""
    waiting = Lease("gpu-0", "a", folder=folder)
    (place,) = (folder / "gpu-0.queue").iterdir()
    handle = os.open(place, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(handle)
    waiting.release()


@pytest.mark.skipif(os.getuid() != 0, reason="needs two users")
def test_users_of_a_host_share_the_queue(common: Path) -> None:
    """Another user waits for ours, then gets the device, whatever the umask."""
    folder = common / "leases"
    mine = Lease("gpu-0", "mine", folder=folder)
    assert mine.take()
    child = os.fork()
    if child == 0:
        assert mine._lock is not None
        os.close(mine._lock)  # a fork's copy would keep the lock
        os.setgid(65534)
        os.setuid(65534)
        try:
            theirs = Lease("gpu-0", "theirs", folder=folder)
            until = time.monotonic() + 20
            waited = not theirs.take()
            while not theirs.take() and time.monotonic() < until:
                time.sleep(0.01)
            os._exit(0 if waited and theirs.held else 1)
        finally:
            traceback.print_exc()
            os._exit(2)
    time.sleep(0.5)
    mine.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_link_in_the_place_of_the_lock_is_refused(folder: Path, tmp_path: Path) -> None:
    """A lock file cannot be led to somebody's file."""
    Lease("gpu-0", "a", folder=folder).release()
    (folder / "gpu-0.lock").symlink_to(tmp_path / "victim")
    waiting = Lease("gpu-0", "a", folder=folder)
    with pytest.raises(MachineError, match=r"no lease without .*gpu-0\.lock"):
        waiting.take()
    waiting.release()
    assert not (tmp_path / "victim").exists()


def test_foreign_hands_on_a_device_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process on the card without a lease is reported with user and command; ours is not."""
    stranger = subprocess.Popen(["sleep", "4326"])
    ours = subprocess.Popen(["sleep", "4327"], env={leases.HOLDER: "any"})
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho {stranger.pid}\necho {ours.pid}\necho 99999999\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    try:
        (found,) = foreign.occupants("nvidia", 0)
    finally:
        for process in (stranger, ours):
            process.kill()
            process.wait()
    assert (found.pid, found.user) == (stranger.pid, leases.user())
    assert str(found).endswith("(sleep 4326)")


@pytest.mark.parametrize("script", ["exit 9", "echo garbage", "echo", "exec sleep 0; echo 1e9"])
def test_a_tool_that_fails_names_nobody(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken nvidia-smi is not a foreign process."""
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert foreign.occupants("nvidia", 0) == ()
    assert foreign.occupants("cpu", 0) == ()


def test_two_names_of_one_card_share_a_lease(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of a card depends on who counts: its own number is the key."""
    monkeypatch.setitem(leases.UNIQUE, "nvidia", lambda _: "GPU-1234")
    one, two = Lease("nvidia-0", "a", folder=folder), Lease("nvidia-1", "b", folder=folder)
    assert one.take()
    assert not two.take()
    assert (folder / "GPU-1234.lock").exists()
    one.release()
    two.release()


def test_the_record_says_who_since_when_at_work_and_until_when(folder: Path) -> None:
    """What somebody who waits reads; a holder that stands still or is late is shown as such."""
    mine = Lease("gpu-0", "timing", folder=folder)
    assert mine.take()
    first = mine.holder()
    mine.beat()
    latest = mine.holder()
    mine.release()
    assert first is not None
    assert latest is not None
    assert latest.beat > first.beat >= first.since == latest.since
    assert latest.until == latest.since + leases.HOLD_S
    assert str(latest) == f"{leases.user()}, pid {os.getpid()} (timing)"
    stuck = replace(latest, beat=latest.beat - 100, until=latest.since - 7)
    assert "should have ended 7 s ago; no sign of life since 100 s" in str(stuck)
