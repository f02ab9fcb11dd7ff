"""A spool, or its results, as one tar file for those who carry it by hand.

The first entry lists all others with their hashes, so that a file which was cut on its way shows
before anything of it is used.
"""

import hashlib
import io
import json
import tarfile
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from data.errors import MachineError
from targets.remote.jobs import Refused

LIST = "CONTENTS.json"


def write(path: Path, files: Mapping[str, Path], *, top: str = "") -> None:
    """Writes the files below `top` under their names; MachineError for the disk."""
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        contents = {name: files[name].read_bytes() for name in sorted(files)}
        listed = {name: _hash(content) for name, content in contents.items()}
        with tarfile.open(partial, "w") as tar:
            _add(tar, f"{top}{LIST}", json.dumps(listed, indent=1).encode(), 0o644)
            for name, content in contents.items():
                _add(tar, f"{top}{name}", content, files[name].stat().st_mode & 0o755)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise MachineError(f"cannot write {path}: {error.strerror or error}") from error


def read(path: Path) -> dict[str, bytes]:
    """The files of a tar that `write` made, whole or not at all; Refused says what is amiss."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:*") as tar:
            for entry in tar:
                opened = tar.extractfile(entry) if entry.isreg() else None
                if opened is None:
                    raise Refused(f"{path}: {entry.name} is no plain file; it is no spool's tar")
                found[entry.name] = opened.read()
    except FileNotFoundError:
        raise Refused(f"{path} is not there") from None
    except (tarfile.TarError, EOFError, OSError) as error:
        raise Refused(f"{path} is cut off or no tar file ({error}); fetch it again") from None
    return _checked(path, found)


def _checked(path: Path, found: dict[str, bytes]) -> dict[str, bytes]:
    try:
        listed = json.loads(found.pop(LIST))
    except (KeyError, ValueError):
        raise Refused(f"{path} holds no {LIST}: it is not the results.tar of a spool") from None
    for name, digest in listed.items():
        if name not in found:
            raise Refused(f"{path} is cut off: {name} is missing; fetch it again")
        if _hash(found[name]) != digest:
            raise Refused(f"{path} is damaged: {name} is not what was packed; fetch it again")
    if extra := sorted(found.keys() - listed.keys()):
        raise Refused(f"{path} was changed: nobody packed {extra[0]}")
    if strange := [n for n in found if ".." in PurePosixPath(n).parts or n.startswith("/")]:
        raise Refused(f"{path} names a place outside: {strange[0]}")
    return found


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
