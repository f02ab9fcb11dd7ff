"""What a candidate compiled when it first ran, handed to its later children.

A Triton kernel costs 1.9 s to build and 0.01 s to load again, a torch extension a minute. The first
child builds in its own sized tmpfs; the judge copies what lies in the known caches, and nothing but
plain files, into a folder that only later children of the same candidate see. A candidate can put
anything there: it is its own code that reads it.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

CACHES = (".triton/cache", ".cache/torch_extensions")
"""Below the child's home."""
FILES, BYTES = 2000, 128 << 20
FOLDER = "kept"
"""In the judge's cache: folders of jobs that run, each named after its process."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def folder(cache: Path) -> Path:
    """A new one, for one candidate of this process."""
    (cache / FOLDER).mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=cache / FOLDER))
    made.chmod(0o755)  # a child may be another user
    return made


def sweep(cache: Path) -> None:
    """Removes what jobs left that were killed; another judge may work in the same cache."""
    for left in (cache / FOLDER).glob("*"):
        if not Path("/proc", left.name.partition("-")[0]).exists():
            shutil.rmtree(left, ignore_errors=True)


def collect(home: str, to: Path) -> None:
    """Copies the caches below a child's home; it may be gone or hide them."""
    for cache in CACHES:
        with suppress(OSError):
            folder = _opened(home, cache)
            try:
                _copy(folder, to / cache)
            finally:
                os.close(folder)


def restore(kept: Path) -> None:
    """In a later child, before it reads foreign code: the caches where they were."""
    for cache in CACHES:
        if (kept / cache).is_dir():
            shutil.copytree(kept / cache, Path(os.environ["HOME"], cache), dirs_exist_ok=True)


def _opened(home: str, cache: str) -> int:
    """A descriptor of the folder; a link on the way, which would lead to our files, is refused."""
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    for name in cache.split("/"):
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _copy(folder: int, to: Path) -> None:
    left = BYTES
    for number, (name, size, fd) in enumerate(_files(folder)):
        left -= size
        if number >= FILES or left < 0:
            os.close(fd)
            return
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(fd, "rb") as source, target.open("wb") as copy:
            copy.write(source.read(size))
            copy.flush()
            facts = os.fstat(source.fileno())
            os.utime(copy.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))
            os.fchmod(copy.fileno(), 0o755)


def _files(folder: int) -> Iterator[tuple[str, int, int]]:
    """Name, size and open descriptor of each plain file."""
    for path, _, names, at in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        for name in names:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
            facts = os.fstat(fd)
            if stat.S_ISREG(facts.st_mode):
                yield os.path.normpath(f"{path}/{name}"), facts.st_size, fd
            else:
                os.close(fd)
