"""What a machine is: a host that runs commands, takes and gives files and lends its devices.

The deadline is always ours, a non-zero exit is a value, and a host that cannot be reached, a tool
or a disk that fails raises `MachineError`. One file a transport.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePath
from typing import Any, Protocol

from data.records import Device
from targets.remote.command import Completed

__all__ = ["Completed", "Machine"]


class Machine(Protocol):
    """A host; usable from any thread and any event loop."""

    @property
    def name(self) -> str: ...

    async def run(self, command: tuple[str, ...], deadline_s: float) -> Completed:
        """Runs a command without a shell."""

    async def put(self, here: Path, there: PurePath) -> None:
        """Copies a file to the machine; folders are made."""

    async def get(self, there: PurePath, here: Path) -> None:
        """Copies a file from the machine."""

    def lease(self, device: Device) -> AbstractAsyncContextManager[None]:
        """Exclusive use of a device while the context is open, for whatever is timed."""

    def turn(self, device: Device) -> AbstractAsyncContextManager[None]:
        """Exclusive use of a device while a job that is asked inside runs.

        Such a job may already wait on the device's own host: it starts there when the one before
        ends, and no round trip to the controller lies between them.
        """

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """The answer of the machine's judge server, plain data (`targets/remote/serve.py`)."""

    def close(self) -> None:
        """Ends whatever was started there."""
