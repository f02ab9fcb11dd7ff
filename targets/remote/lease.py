"""Exclusive use of a device on its own host: a place in a queue, then a lock, both files.

All users of the host share one folder. The kernel lets go of a lock however its holder dies;
whoever takes over then ends what the dead holder had left running. Waiting is polling: `take` asks
once, in the order in which the places were taken.
"""

import fcntl
import itertools
import json
import os
import pwd
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from data.errors import MachineError
from targets.remote import nvml, offshoots
from targets.remote.offshoots import end

FOLDER = Path("/tmp/kforge-leases")  # noqa: S108 (one place for all users; checked when used)
SHARED = 0o1777
"""Everybody may add files, only the owner of one may remove it."""
HOLD_S = 4 * 3600.0
"""Nothing that is timed takes as long: who holds a device longer gives it up."""
BEAT_S = 5.0
SILENT_S = 4 * BEAT_S
RECORD = 512
"""Bytes of a record at least: each is as long as the one that it replaces."""
HOLDER = "KFORGE_HOLDER"
"""Mark in the environment of what a holder starts."""

UNIQUE: dict[str, Callable[[int], str]] = {"nvidia": nvml.uuid}
"""By target: the number that a card keeps under every index; empty where it has none."""

_counter = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who has a device, as its lock file says."""

    pid: int
    born: str
    user: str
    purpose: str
    mark: str
    since: float
    """Seconds since the epoch, this host's clock; so are the next two."""
    beat: float
    """When the holder said last that it is at work."""
    until: float
    """When it will have given the device back."""

    def __str__(self) -> str:
        late = time.time() - self.until
        silent = time.time() - self.beat
        said = f"; should have ended {late:.0f} s ago" if late > 0 else ""
        said += f"; no sign of life since {silent:.0f} s" if silent > SILENT_S else ""
        return f"{self.user}, pid {self.pid} ({self.purpose}){said}"


class Lease:
    """One wish for a device: a place in its queue until `take`, the device until `release`."""

    def __init__(self, device: str, purpose: str, *, folder: Path = FOLDER) -> None:
        """Takes the place. MachineError when the folder cannot be shared."""
        device, self._purpose = physical(device), purpose
        self._queue = _shared(_shared(folder) / f"{device}.queue")
        self._path = folder / f"{device}.lock"
        self._lock: int | None = None
        self._since = 0.0
        self._place, self._ticket = _ticket(self._queue)

    @property
    def held(self) -> bool:
        return self._lock is not None

    def take(self) -> bool:
        """True when the device is ours now; False while others are before us."""
        if self.held:
            return True
        if any(not _dead(place) for place in _before(self._queue, self._place)):
            return False
        lock = _open(self._path)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        _succeed(holder(self._path))
        self._since = time.time()
        self.beat()
        self._leave()
        return True

    def holder(self) -> Holder | None:
        """Who has the device now; None when nobody, or somebody who did not say."""
        return holder(self._path)

    def release(self) -> None:
        """Gives the device or the place back; twice is no fault."""
        if self._lock is not None:
            with suppress(OSError):
                os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None
        self._leave()

    def beat(self) -> None:
        """Writes into the lock file who holds the device, and that it is at work."""
        assert self._lock is not None
        told = {
            "pid": os.getpid(),
            "born": offshoots.born(os.getpid()),
            "user": user(),
            "purpose": self._purpose,
            "mark": mark(),
            "since": self._since,
            "beat": time.time(),
            "until": self._since + HOLD_S,
        }
        data = json.dumps(told).encode().ljust(RECORD)
        os.pwrite(self._lock, data, 0)  # in one piece, or a reader would see half of it
        os.ftruncate(self._lock, len(data))

    def _leave(self) -> None:
        if self._ticket is not None:
            with suppress(OSError):
                self._place.unlink()
            os.close(self._ticket)
            self._ticket = None


def mark() -> str:
    """What names this process among all holders of the host."""
    return f"{os.getpid()}-{offshoots.born(os.getpid()).replace(' ', '_')}"


def user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def physical(device: str) -> str:
    """The card behind `target-index`: two names of one card share a lease.

    >>> physical("cpu-0")
    'cpu-0'
    """
    target, _, index = device.rpartition("-")
    return (UNIQUE[target](int(index)) if target in UNIQUE else "") or device


def holder(path: Path) -> Holder | None:
    """Who is written in a lock file."""
    try:
        return Holder(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def holders(folder: Path = FOLDER) -> dict[str, Holder]:
    """By device: who has it, the living only."""
    known = {path.stem: holder(path) for path in sorted(folder.glob("*.lock"))}
    return {name: h for name, h in known.items() if h and offshoots.born(h.pid) == h.born}


def _succeed(earlier: Holder | None) -> None:
    """The lock is free but its record stands: the holder died, what it started may still run."""
    if earlier is not None and earlier.mark != mark():
        end(0, f"{HOLDER}={earlier.mark}")


def _shared(folder: Path) -> Path:
    """A folder for all users of the host; MachineError when it is a link or closed to us."""
    try:
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(SHARED)
        status = folder.lstat()
        usable = stat.S_ISDIR(status.st_mode) and os.access(folder, os.W_OK | os.X_OK)
        shared = stat.S_IMODE(status.st_mode) == SHARED
    except OSError as error:
        raise MachineError(f"no lease without {folder}: {error.strerror}") from None
    if not usable or not (shared or status.st_uid == os.getuid()):
        raise MachineError(
            f"the lease folder {folder} is no folder with mode 1777: it belongs to somebody else;"
            " have it removed"
        )
    return folder


def _open(path: Path) -> int:
    """The lock file, made for all users when it is not there; a link is refused."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(3):
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            with suppress(FileExistsError):
                made = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(made, 0o666)  # whatever the umask
                return made
        except OSError as error:
            raise MachineError(f"no lease without {path}: {error.strerror}") from None
    raise MachineError(f"the lock file {path} comes and goes; is somebody deleting it?")


def _ticket(queue: Path) -> tuple[Path, int | None]:
    """A place at the end of the queue: its file, and the descriptor whose lock keeps it alive."""
    name = f"{time.monotonic_ns():020d}-{os.getpid()}-{next(_counter)}"
    fresh = queue / f".{name}"
    try:
        ticket = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        os.fchmod(ticket, 0o644)
        fcntl.flock(ticket, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fresh.rename(queue / name), ticket  # visible only when it is locked
    except OSError as error:
        raise MachineError(f"no place in the queue {queue}: {error.strerror}") from None


def _before(queue: Path, place: Path) -> list[Path]:
    names = sorted(n for n in os.listdir(queue) if not n.startswith("."))  # noqa: PTH208
    return [queue / n for n in names if n < place.name]


def _dead(place: Path) -> bool:
    """Whether nobody waits at that place any more; it is then cleared away."""
    try:
        ticket = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(ticket, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(ticket)
    with suppress(OSError):  # another user's stays, dead
        place.unlink()
    return True
