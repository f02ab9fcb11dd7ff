"""What `kforge-remote.pyz` does first: unpacks itself, once for a user, and hands over.

This file is the archive's `__main__.py`. An older Python must be able to read it, so that it can
say what it lacks. Children of the judge, inductor and Triton want real files: nothing runs from
within the archive.
"""

import os
import runpy
import shutil
import stat
import sys
import tempfile
import zipfile
from pathlib import Path

OLDEST = (3, 11)
IDENTITY = "ARCHIVE"
"""The entry that holds the hash of all others."""


def main() -> None:
    """Runs the archive's commands; does not return."""
    if sys.version_info < OLDEST:
        sys.exit(
            "kforge-remote: this is Python %d.%d; 3.11 or later is needed" % sys.version_info[:2]  # noqa: UP031
        )
    archive = Path(__file__).parent
    try:
        sys.path[0] = str(unpacked(archive))
    except (OSError, zipfile.BadZipFile) as error:
        sys.exit("kforge-remote: cannot unpack {}: {}".format(archive, error))  # noqa: UP032
    runpy.run_module("tasks.remote", run_name="__main__")


def unpacked(archive: Path) -> Path:
    """The folder with the archive's files, made if it is not there or not whole. OSError."""
    place = _own(Path(tempfile.gettempdir(), "kforge-{}".format(os.getuid())), "remote")  # noqa: UP032
    with zipfile.ZipFile(archive) as file:
        folder = place / file.read(IDENTITY).decode().strip()
        if not _whole(folder, file):
            fresh = Path(tempfile.mkdtemp(dir=str(place)))
            file.extractall(str(fresh))
            _put(fresh, folder)
    return folder


def _own(outer: Path, name: str) -> Path:
    """A folder that is ours alone: in a shared one another user could change what is run."""
    for path in (outer, outer / name):
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
        if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
            raise OSError("{} belongs to somebody else: remove it or set TMPDIR".format(path))  # noqa: UP032
    return outer / name


def _whole(folder: Path, file: zipfile.ZipFile) -> bool:
    """Whether all is there: those who clean temporary folders take single files."""
    for entry in file.infolist():
        path = folder / entry.filename
        if not path.is_file() or path.stat().st_size != entry.file_size:
            return False
    return True


def _put(fresh: Path, folder: Path) -> None:
    """Renames into place; who comes second uses what the first has put there."""
    if folder.exists() and not any(folder.glob(IDENTITY)):
        shutil.rmtree(str(folder), ignore_errors=True)
    try:
        fresh.rename(folder)
    except OSError:
        for path in fresh.rglob("*"):
            if path.is_file():
                target = folder / path.relative_to(fresh)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
        shutil.rmtree(str(fresh), ignore_errors=True)


if __name__ == "__main__":
    main()
