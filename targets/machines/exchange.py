"""Bytes within lines of JSON: how a command ended, and parts of files."""

import base64
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from data.errors import MachineError
from targets.remote.command import Completed

PART = 1 << 20
"""Bytes of a file in one line."""


def packed(done: Completed) -> dict[str, Any]:
    """A command's end as plain data."""
    return {
        "code": done.code,
        "out": text(done.out),
        "err": text(done.err),
        "seconds": done.seconds,
        "timed_out": done.timed_out,
    }


def unpacked(told: dict[str, Any]) -> Completed:
    """What `packed` made; KeyError or ValueError when it is nothing of the kind."""
    return Completed(
        code=int(told["code"]),
        out=content(told["out"]),
        err=content(told["err"]),
        seconds=float(told["seconds"]),
        timed_out=bool(told["timed_out"]),
    )


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def content(line: str) -> bytes:
    return base64.b64decode(line, validate=True)


def write_part(path: Path, name: str, data: bytes, *, last: bool) -> None:
    """Adds to a file beside `path`, which takes its place with the last part. MachineError."""
    partial = path.with_name(f".kforge-{name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("ab") as file:
            file.write(data)
        if last:
            os.replace(partial, path)  # noqa: PTH105 (the same)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise MachineError(f"cannot write {path}: {error.strerror}") from None


def read_part(path: Path, offset: int) -> dict[str, Any]:
    """Up to 1 MiB from there on; `last` when nothing follows. MachineError."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(PART + 1)
    except OSError as error:
        raise MachineError(f"cannot read {path}: {error.strerror}") from None
    return {"data": text(data[:PART]), "last": len(data) <= PART}
