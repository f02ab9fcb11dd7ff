"""The walls round a child, built before it reads a line of foreign code.

The keeper (`warm.py`) makes them, the child enters: see `ladder.py` for the rungs.
"""

import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from targets.remote import landlock, root, seccomp, syscalls, users
from targets.remote.ladder import Rung
from targets.remote.root import Source
from targets.remote.syscalls import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG
from targets.remote.users import User

NAMESPACES = (
    syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
)
PROC = ("cpuinfo", "meminfo", "stat", "loadavg", "version", "devices", "sys", "driver")
"""What a child without a procfs of its own may read there, beside its own folder."""

_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
"""Above the largest tensor: else reuse of a buffer sells page faults as speed (7.7x measured)."""
DEVICE = {
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # else asking whether there is a device spoils forks
    "CUDA_DEVICE_MAX_CONNECTIONS": "4",  # half of the usual queues: half the time for a context
    "CUDA_DEVICE_MAX_COPY_CONNECTIONS": "1",  # of 8; eight contexts at once: 0.57 s, not 0.84
}
"""For the judge and its children alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a child may take."""

    memory_bytes: int
    seconds: float
    """Processor time is limited to this many seconds on every core."""
    tmpfs_bytes: int = 1 << 30
    processes: int = 64 + 4 * (os.cpu_count() or 1)
    """OpenMP on many cores breaks a fixed 64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The files that a child sees beside the system's and Python's."""

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    """Of the cache, for a baseline: it is their owner."""
    nodes: tuple[str, ...] = ()
    """Device nodes, absolute."""
    room: str = ""
    """Its private folder where it cannot have a file system of its own."""
    talks: bool = False
    """Whether its processes may have sockets in common: a profiler's need it to find each other."""


def environment(cache: Path) -> dict[str, str]:
    """The whole environment of the warm process and its children: an allow-list, no secrets.

    Allocator thresholds are read when libc starts, so the warm process is executed with them.
    """
    return {
        "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        "HOME": "/tmp",  # noqa: S108 (a tmpfs of the child's own)
        "TMPDIR": "/tmp",  # noqa: S108
        "USER": "kforge",  # the compiler asks for a name, and no child can read the user list
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        **DEVICE,
        **_ALLOCATOR,
    }


def whom(rung: Rung, *, trusted: bool, paths: Sequence[str] = ()) -> User | None:
    """Whom a child will be on this host, if it has to reach `paths` too; None: who we are.

    A root of its own shows a user what lies in folders that it could not pass.
    """
    reached = (sys.prefix, sys.base_prefix, *root.packages(), *paths)
    return users.spare(trusted=trusted, paths=() if rung.namespaces else reached)


def die_with_parent(parent: int) -> None:
    """The kernel kills this process when its parent dies; `parent` is checked for the race.

    A change of user or capabilities takes it back: to be said after each.
    """
    syscalls.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def adopt_orphans() -> None:
    """Descendants whose parent died become children of this process."""
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)


class Walls:
    """What will hold one child."""

    def __init__(self, rung: Rung, limits: Limits, view: View, user: User | None) -> None:
        """In the keeper, while it may still look at every path."""
        self._rung, self._limits, self._view, self._user = rung, limits, view, user
        self._sources: list[Source] = []
        if rung.namespaces and user is not None:
            self._take()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the child must keep open until it is shut in."""
        return tuple(source.fd for source in self._sources)

    @property
    def place(self) -> str:
        """Where the child may write."""
        return "/tmp" if self._rung.namespaces else self._view.room  # noqa: S108

    def separate(self) -> None:
        """In the keeper: its next fork is process 1 of namespaces of its own. Raises OSError."""
        if not self._rung.namespaces:
            return
        if self._user is not None:
            users.become(self._user, keep_capabilities=True)
        uid, gid = os.getuid(), os.getgid()
        syscalls.unshare(NAMESPACES)
        syscalls.prctl(PR_SET_DUMPABLE, 1)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
        if self._user is None:
            self._take()

    def enclose(self) -> None:
        """In the child: shuts it in for good. Raises OSError where the kernel refuses."""
        os.setsid()
        talks = self._view.talks and self._rung.namespaces
        if talks:
            syscalls.loopback_up()
        if self._rung.namespaces:
            root.build(
                self._sources, self._view.writable, self._view.nodes, self._limits.tmpfs_bytes
            )
        else:
            os.chdir(self._view.room)
            if self._user is not None:
                users.become(self._user)
        syscalls.drop_capabilities()
        self._limit()
        syscalls.prctl(PR_SET_NO_NEW_PRIVS, 1)
        if self._rung is Rung.LANDLOCK:
            landlock.restrict(self._rules())
        seccomp.install(signals=self._signals_stay_inside(), talks=talks)
        # The judge reads answers from the child's memory; a change of user forbade it.
        syscalls.prctl(PR_SET_DUMPABLE, 1)
        syscalls.prctl(syscalls.PR_SET_PTRACER, -1)

    def _take(self) -> None:
        """With the rights of root before it becomes a user, else with those in the namespace."""
        paths = (*root.system_folders(), *self._view.readable, *self._view.writable)
        self._sources = root.taken(paths)

    def _signals_stay_inside(self) -> bool:
        landlocked = self._rung is Rung.LANDLOCK and landlock.abi() >= landlock.SIGNALS_ABI
        return self._rung.namespaces or landlocked

    def _rules(self) -> list[tuple[str, int]]:
        read = (*root.system_folders(), *self._view.readable)
        read += tuple(f"/proc/{name}" for name in PROC)
        nodes = (*(f"/dev/{name}" for name in root.DEVICES), *self._view.nodes, "/proc/self")
        write = (self._view.room, *self._view.writable)
        return [
            *((path, landlock.READ) for path in read),
            *((path, landlock.DEVICE) for path in nodes),
            *((path, landlock.WRITE) for path in write),
        ]

    def _limit(self) -> None:
        cores = len(os.sched_getaffinity(0))
        taken = 0 if self._rung.namespaces else _threads_of(os.getuid())
        for what, value in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, self._limits.tmpfs_bytes),
            (resource.RLIMIT_NOFILE, 1024),
            (resource.RLIMIT_CPU, int(self._limits.seconds * cores) + 1),
            # Holds where there is no control group, for any user but root.
            (resource.RLIMIT_NPROC, self._limits.processes + taken),
        ):
            _, hard = resource.getrlimit(what)
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(what, (bound, bound))


def _threads_of(uid: int) -> int:
    """Threads of the user's processes on this host: its limit counts them all."""
    count = 0
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                count += len(list((entry / "task").iterdir()))
    return count
