"""A resident in this process, and controllers of it without SSH between."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from targets.machines.local import LocalMachine
from targets.machines.remote import RemoteMachine
from targets.machines.resident import Resident


class Counted(LocalMachine):
    """Judges by counting how often it was asked."""

    asked = 0

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        del op, args, deadline_s
        self.asked += 1
        return self.asked


class Socket:
    """A stream that breaks when the host answers a request with the next of `cuts` in it."""

    def __init__(self, place: Path, cuts: list[bytes]) -> None:
        self._cuts, self._cut = cuts, False
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(place))

    def read(self, timeout_s: float) -> bytes:
        """What is there."""
        self._socket.settimeout(timeout_s)
        data = self._socket.recv(1 << 16)
        if self._cut:
            raise OSError("the cable was cut")
        return data

    def write(self, data: bytes) -> None:
        """All of it."""
        if self._cuts and self._cuts[0] in data:
            del self._cuts[0]
            self._cut = True
        self._socket.sendall(data)

    def close(self) -> None:
        """Ends whoever reads."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Near:
    """One resident, and as many controllers of it as are asked for."""

    def __init__(self, root: Path, place: Path) -> None:
        self.host = Counted(root / "cache", locks=root / "locks")
        self.resident = Resident(root, self.host)
        self._place = place
        self._made: list[RemoteMachine] = []

    def controller(self, *cuts: bytes) -> RemoteMachine:
        """Its link breaks once for each of the cuts, in this order."""
        left = list(cuts)
        machine = RemoteMachine("near", lambda _: Socket(self._place, left), scope="tests")
        self._made.append(machine)
        return machine

    async def close(self) -> None:
        """Ends all controllers."""
        for machine in self._made:
            await asyncio.to_thread(machine.close)


@asynccontextmanager
async def near(root: Path) -> AsyncIterator[Near]:
    """Served while the context is open."""
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # a socket's path is short
        place = Path(short, "resident")
        made = Near(root, place)
        serving = asyncio.create_task(made.resident.serve(place))
        while not place.exists():
            await asyncio.sleep(0.01)
        yield made
        await made.close()
        made.resident.stop()
        await serving
