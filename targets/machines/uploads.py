"""Files that are sent here in parts, beside their place until the last part is there."""

import asyncio
import math
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from data.errors import MachineError


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a file; the same piece may come twice when a link breaks."""

    path: Path
    name: str
    """Of the whole transfer."""
    offset: int
    data: bytes
    last: bool

    @property
    def partial(self) -> Path:
        """Where the file grows."""
        return self.path.with_name(f".kforge-{self.name}")


class Uploads:
    """Of one host."""

    def __init__(self) -> None:
        self._growing: dict[Path, float] = {}
        """When the latest part came (`time.monotonic`); infinite while one is being written."""

    async def take(self, part: Part) -> None:
        """Adds the part. MachineError, and nothing is left of the file."""
        self._growing[part.partial] = math.inf
        try:
            await asyncio.to_thread(_written, part)
        finally:
            self._growing[part.partial] = time.monotonic()
        if part.last:
            self._growing.pop(part.partial, None)

    def drop(self, *, before: float = math.inf) -> None:
        """Removes what has not grown since then: its sender gave it up."""
        for path in [p for p, at in self._growing.items() if at < before]:
            del self._growing[path]
            with suppress(OSError):
                path.unlink()


def _written(part: Part) -> None:
    path, partial = part.path, part.partial
    try:
        if part.last and not partial.exists() and _there(part):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("r+b" if part.offset else "wb") as file:
            file.seek(part.offset)
            file.write(part.data)
        if part.last:
            partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise MachineError(f"cannot write {path}: {error.strerror}") from None


def _there(part: Part) -> bool:
    """Whether the file has its place already: the link broke before we could say so."""
    with suppress(OSError), part.path.open("rb") as file:
        file.seek(part.offset)
        return part.offset > 0 and file.read(len(part.data) + 1) == part.data
    return False
