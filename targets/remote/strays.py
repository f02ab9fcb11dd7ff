"""Temporary folders that outlive whoever made them only when that process was killed.

The maker holds a lock on the folder, which the kernel takes away with the process: nobody has to
guess from a number whether it still lives, which processes in other namespaces would not show.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "kforge-record-"
ROOM = "kforge-room-"
"""A child's private folder where it has no file system of its own; its keeper's id follows."""
ENTERING_S = 60.0
"""A folder that is younger may be one whose maker is about to lock it."""


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for as long as the context is open."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as made:
        lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(made)
        finally:
            os.close(lock)


def sweep(entering_s: float = ENTERING_S) -> int:
    """How many folders of processes that were killed have been removed."""
    places = {Path(tempfile.gettempdir()), Path("/tmp")}  # noqa: S108
    rooms = [r for p in places for r in p.glob(f"{ROOM}*") if _keeperless(r)]
    records = [f for p in places for f in p.glob(f"{PREFIX}*") if _left(f, entering_s)]
    for stray in (*rooms, *records):
        shutil.rmtree(stray, ignore_errors=True)
    return sum(not stray.exists() for stray in (*rooms, *records))


def _keeperless(room: Path) -> bool:
    keeper = room.name.removeprefix(ROOM).partition("-")[0]
    return keeper.isdigit() and not Path("/proc", keeper).exists()


def _left(stray: Path, entering_s: float) -> bool:
    """Whether nobody holds the folder; somebody else's, and a link, are left alone."""
    with suppress(OSError):
        lock = os.open(stray, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(lock)
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < entering_s:
                return False
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(lock)
        return True
    return False
