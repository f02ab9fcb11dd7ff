"""Who does a job of a spool: each worker claims it first, and a dead worker's claim is taken over.

A claim is the file `ID.N` in `claims/`, made exclusively; the highest N counts. Taking over means
making N + 1, which only one can; whoever held N sees it before the next row and stops. So no claim
is ever removed, no two clocks are compared, and it works on a folder that several hosts share.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from data.codec import dumps, loads
from data.errors import MachineError

BEAT_S = 5.0
STALE_S = 60.0
"""A claim that did not change for so long, by the clock of whoever looks, is a dead worker's."""


class Lost(Exception):  # noqa: N818 (what happened)
    """Somebody else has taken the job over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The worker behind a claim."""

    host: str
    system: str
    """Boot and process namespace: only where both agree a pid means the same process."""
    pid: int
    born: str
    """Start of the process in clock ticks: a pid is given out again."""
    beat: int = 0
    free: bool = False
    """Parked: anybody may go on at once."""


class Claim:
    """A job that this process holds; beats until it is parked."""

    def __init__(self, path: Path, holder: Holder) -> None:
        self._path, self._holder = path, holder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="spool-claim", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Lost when another worker has taken the job over."""
        stem, _, number = self._path.name.rpartition(".")
        if self._path.with_name(f"{stem}.{int(number) + 1:04d}").exists():
            raise Lost(stem)

    def park(self) -> None:
        """Lets go: the next worker need not wait."""
        self._stop.set()
        self._thread.join()
        _write(self._path, replace(self._holder, free=True))

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_S):
            self._holder = replace(self._holder, beat=self._holder.beat + 1)
            _write(self._path, self._holder)


class Claims:
    """The claims of a spool as one worker sees them."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._seen: dict[str, tuple[bytes, float, bool]] = {}
        """By file: content, when it was first seen so, whether it ever changed."""

    def take(self, job: str) -> Claim | None:
        """The claim; None while a worker that may live holds the job. MachineError."""
        latest = self._latest(job)
        if latest is not None and not self._abandoned(latest):
            return None
        number = int(latest.suffix[1:]) + 1 if latest else 1
        path = self._folder / f"{job}.{number:04d}"
        holder = myself()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with path.open("x") as file:
                file.write(dumps(holder))
        except FileExistsError:
            return None
        except OSError as error:
            raise MachineError(f"cannot write {path}: {error.strerror}") from error
        return Claim(path, holder)

    def held(self, job: str) -> str:
        """Who holds the job, for people; empty when nobody does as far as can be seen."""
        latest = self._latest(job)
        if latest is None or self._abandoned(latest):
            return ""
        holder = _holder(self._seen[latest.name][0])
        return f"{holder.host}, pid {holder.pid}" if holder else "somebody"

    def alive(self, job: str) -> bool:
        """Whether its worker was seen at work: in this system, or by a beat since we look."""
        latest = self._latest(job)
        if latest is None or self._abandoned(latest):
            return False
        holder = _holder(self._seen[latest.name][0])
        return _here(holder) or self._seen[latest.name][2]

    def _latest(self, job: str) -> Path | None:
        found = [p for p in self._folder.glob(f"{job}.*") if p.suffix[1:].isdigit()]
        return max(found, key=lambda p: int(p.suffix[1:]), default=None)

    def _abandoned(self, path: Path) -> bool:
        """Parked, its process gone, or unchanged for too long."""
        content = _content(path)
        before = self._seen.get(path.name)
        if before is None or before[0] != content:
            self._seen[path.name] = (content, self._clock(), before is not None)
        holder = _holder(content)
        if holder is not None:
            if holder.free:
                return True
            if _here(holder):
                return born(holder.pid) != holder.born
        return self._clock() - self._seen[path.name][1] > STALE_S


def _here(holder: Holder | None) -> bool:
    """Whether its pid means something to us."""
    return holder is not None and bool(holder.system) and holder.system == system()


def myself() -> Holder:
    """The calling process."""
    pid = os.getpid()
    return Holder(host=socket.gethostname(), system=system(), pid=pid, born=born(pid))


def system() -> str:
    """Boot and process namespace; empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 (no file: a name)
    except OSError:
        return ""


def born(pid: int) -> str:
    """When the process started, in clock ticks; empty when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _holder(content: bytes) -> Holder | None:
    """None while it is being written."""
    try:
        return loads(Holder, content.decode())
    except (ValueError, TypeError, AttributeError):
        return None


def _write(path: Path, holder: Holder) -> None:
    """Replaces the claim's content; a disk that is full now makes us look dead, no more."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(dumps(holder))
        partial.replace(path)
    except OSError:
        return
