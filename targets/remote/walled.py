"""One function behind the walls, forked from here: for the build phase, which needs no warm side.

A keeper makes the namespaces, forks the child and ends as it ended. The child may print (a bounded
log) and write an answer; both are foreign text.
"""

import os
import selectors
import signal
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from data.errors import MachineError
from targets.remote import sandbox, users
from targets.remote.cgroup import PREFIX, Group
from targets.remote.channel import close_all_but
from targets.remote.ladder import OPTION, Rung, accepted
from targets.remote.sandbox import Limits, View, Walls, whom

KEPT = 4 << 20
"""Bytes of the log and of the answer that are read; the rest is dropped."""
OWN = "/tmp"  # noqa: S108 (its own tmpfs)
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "LC_ALL": "C",
    "TMPDIR": OWN,
    "HOME": OWN,
}
"""The whole of it: no secrets, messages in plain English."""
NOTHING = View()
READY = b"+"
"""Written before the function starts: the walls stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How it ended and what it said."""

    code: int
    """Exit status; 128 + signal when killed."""
    log: str
    answer: bytes
    in_time: bool
    out_of_memory: bool


def walled(
    action: Callable[[int], None], folder: Path, limits: Limits, more: View = NOTHING
) -> Ended:
    """Runs `action(answer)` in a child that can write to `folder` only, its working folder.

    `answer` is a descriptor; `more` is what it may read and which devices it sees. Raises
    MachineError when not even a plain child can be limited, or when its processes are to have
    sockets in common and nothing would keep these inside.
    """
    import torch  # noqa: F401 (the walls look for its folder: once here, not in each child)

    rungs = [r for r in accepted(os.environ.get(OPTION)) if r.namespaces or not more.talks]
    ended = None
    for rung in rungs:
        walls = _walls(rung, folder, limits, more)
        ended = _once(lambda: action(3), folder, limits, walls)
        if ended.answer.startswith(READY):
            return Ended(
                code=ended.code,
                log=ended.log,
                answer=ended.answer.removeprefix(READY),
                in_time=ended.in_time,
                out_of_memory=ended.out_of_memory,
            )
    why = ended.log[-200:].strip() if ended else "there are no namespaces"
    raise MachineError(f"a process could not be shut in: {why}")


def _walls(rung: Rung, folder: Path, limits: Limits, more: View) -> Walls:
    """Those of a candidate, as its user, who is given the folder."""
    user = whom(rung, trusted=False, paths=[str(folder.parent)])
    users.own(folder, os.getuid() if user is None else user.uid)
    view = replace(more, writable=(str(folder),), room=str(folder))
    return Walls(rung, limits, view, user)


def _once(action: Callable[[], None], folder: Path, limits: Limits, walls: Walls) -> Ended:
    log, answer, gate = os.pipe(), os.pipe(), os.pipe()
    parent = os.getpid()
    keeper = os.fork()
    if keeper == 0:
        sandbox.die_with_parent(parent)
        os.close(log[0])
        os.close(answer[0])
        os.read(gate[0], 1)
        _keep(lambda: _live(action, folder, walls, (log[1], answer[1])), walls)
    group = Group(f"{PREFIX}{uuid.uuid4().hex[:12]}", limits, keeper)
    os.write(gate[1], READY)
    for end in (*gate, *walls.descriptors):  # the child has its own copies of them
        os.close(end)
    os.close(log[1])
    os.close(answer[1])
    said, in_time = _drain((log[0], answer[0]), time.monotonic() + limits.seconds)
    os.kill(keeper, signal.SIGTERM)
    _, status = os.waitpid(keeper, 0)
    killed = group.out_of_memory()
    group.close()
    return Ended(
        code=os.waitstatus_to_exitcode(status),
        log=said[log[0]].decode(errors="replace"),
        answer=bytes(said[answer[0]]),
        in_time=in_time,
        out_of_memory=killed,
    )


def _drain(readers: tuple[int, ...], deadline: float) -> tuple[dict[int, bytearray], bool]:
    """What comes out of each pipe until its end or the deadline; whether the ends came first."""
    said = {reader: bytearray() for reader in readers}
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader, selectors.EVENT_READ)
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, 1 << 16)
                said[key.fd] += chunk[: max(KEPT - len(said[key.fd]), 0)]
                if not chunk:
                    selector.unregister(key.fd)
        in_time = not selector.get_map()
    for reader in readers:
        os.close(reader)
    return said, in_time


def _keep(live: Callable[[], None], walls: Walls) -> None:
    """The keeper's whole life; never returns."""
    code = 96
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        parent = os.getppid()
        walls.separate()
        sandbox.die_with_parent(parent)
        inner = os.fork()
        if inner == 0:
            sandbox.die_with_parent(os.getppid())
            live()
        signal.signal(signal.SIGTERM, lambda *_: _end(inner))
        code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
        _end(inner)
    finally:
        os._exit(code if code >= 0 else 128 - code)


def _end(inner: int) -> None:
    """Kills the child with its descendants: it leads a session of its own."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(inner, signal.SIGKILL)


def _live(action: Callable[[], None], folder: Path, walls: Walls, pipes: tuple[int, int]) -> None:
    """The child: walls first, then the function; never returns."""
    try:
        log, answer = pipes
        parent = os.getppid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(answer, 3)
        close_all_but((0, 1, 2, 3, *walls.descriptors))
        walls.enclose()
        sandbox.die_with_parent(parent)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
        os.write(3, READY)
        action()
        os._exit(0)
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(97)
