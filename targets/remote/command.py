"""One command under our own deadline: bounded output, its whole process group killed and gone."""

import os
import re
import selectors
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from data.errors import MachineError
from targets.remote.offshoots import birth, end

KEPT = 1 << 20
"""Bytes kept of the head and of the tail of each stream."""
CHUNK = 1 << 16
TICK_S = 0.02
"""How soon the end of a command is seen whose children still hold its streams open."""
MARK = "KFORGE_JOB"
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a command ended. `code` is negative when a signal ended it."""

    code: int
    out: bytes
    """At most 1 MiB of the head and of the tail; a line between them says how much is missing."""
    err: bytes
    seconds: float
    timed_out: bool = False
    """Killed at the deadline, with its whole process group."""


class Excerpt:
    """Head and tail of a stream of any length."""

    def __init__(self) -> None:
        self._head, self._tail, self._lost = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        """Keeps what fits; what is in the middle is counted."""
        room = KEPT - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - KEPT
        if excess > 0:
            self._lost += excess
            del self._tail[:excess]

    def content(self) -> bytes:
        """Everything, or both ends with a line between them."""
        cut = f"\n... {self._lost} bytes left out ...\n".encode() if self._lost else b""
        return bytes(self._head + cut + self._tail)


class Command:
    """A started command in a session of its own; `cancel` may come from any thread."""

    def __init__(self, words: tuple[str, ...], *, job: str) -> None:
        self._job = f"{MARK}={job}"
        self._started, self._cancelled = time.monotonic(), threading.Event()
        try:
            self._process = subprocess.Popen(
                words,
                env={**public_environment(), MARK: job},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else str(error)
            raise MachineError(f"cannot run {words[0]!r} on this machine: {said}") from None
        self.pid = self._process.pid
        self._birth = birth(self.pid)

    def cancel(self) -> None:
        """Has the command killed; `wait` returns when nothing of it is left."""
        self._cancelled.set()

    def wait(self, deadline_s: float) -> Completed:
        """How it ended; at the deadline it is killed. MachineError when it cannot be."""
        streams = {self._process.stdout: Excerpt(), self._process.stderr: Excerpt()}
        with self._process, selectors.DefaultSelector() as selector:
            for stream, excerpt in streams.items():
                assert stream is not None
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, excerpt)
            ended = self._pump(selector, self._started + deadline_s)
            end(self.pid, self._job, since=self._birth)
            self._process.wait()
            for key in list(selector.get_map().values()):
                while chunk := _read(key.fd):
                    key.data.add(chunk)
        out, err = (excerpt.content() for excerpt in streams.values())
        return Completed(
            code=self._process.returncode,
            out=out,
            err=err,
            seconds=time.monotonic() - self._started,
            timed_out=not ended and not self._cancelled.is_set(),
        )

    def _pump(self, selector: selectors.BaseSelector, until: float) -> bool:
        """Reads both streams until the command has ended; False when it has to be killed."""
        while self._process.poll() is None:
            left = until - time.monotonic()
            if left <= 0 or self._cancelled.is_set():
                return False
            if not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(min(left, TICK_S))
            for key, _ in selector.select(min(left, TICK_S)) if selector.get_map() else ():
                chunk = _read(key.fd)
                if chunk:
                    key.data.add(chunk)
                elif chunk is not None:
                    selector.unregister(key.fileobj)
        return True


def public_environment() -> dict[str, str]:
    """Our environment without what looks like a secret."""
    return {name: value for name, value in os.environ.items() if not SECRET.search(name)}


def _read(fd: int) -> bytes | None:
    """What is there; empty at the end, None when nothing is there yet."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
