"""Bytes within lines of JSON: how a command ended, and parts of files."""

import base64
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


def read_part(path: Path, offset: int) -> dict[str, Any]:
    """Up to 1 MiB from there on; `last` when nothing follows. MachineError."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(PART + 1)
    except OSError as error:
        raise MachineError(f"cannot read {path}: {error.strerror}") from None
    return {"data": text(data[:PART]), "last": len(data) <= PART}
