"""A machine elsewhere: its resident does the jobs, this is how a controller talks to it."""

import asyncio
import hashlib
import json
import threading
import uuid
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path, PurePath
from typing import Any

from data.codec import encode
from data.errors import MachineError
from data.records import Device
from targets.machines.archive import identity
from targets.machines.exchange import PART, content, text, unpacked
from targets.machines.judged import Judged
from targets.machines.link import Connect, Link
from targets.remote.command import Completed

FILE_S = 120.0
"""For one part of a file."""
CANCEL_S = 10.0
QUEUE_S = 24 * 3600.0
"""For a lease: others may be timing all night."""
UNCOLLECTED = 8
"""Answers that the host keeps although they arrived: we may be killed before they are on record."""

_turn: ContextVar[Device | None] = ContextVar("turn", default=None)
"""For which device what is asked now waits on its host."""


class RemoteMachine(Judged):
    """Usable from any thread and any event loop.

    `scope` names whose jobs these are, such as the ledger's folder: a controller that starts again
    with the same scope asks for the same jobs and gets the answers of those already begun.
    """

    def __init__(self, name: str, connect: Connect, *, scope: str) -> None:
        self.name, self._scope = name, scope
        self.link = Link(name, connect)
        self._lock = threading.Lock()
        self._asked: dict[str, int] = {}
        """How many equal requests are under way, by their key."""
        self._collected: deque[str] = deque()
        self._held: dict[tuple[str, int], str] = {}

    async def run(self, command: tuple[str, ...], deadline_s: float) -> Completed:
        """How the command ended, with nothing of it left; MachineError when it is not there."""
        args = {"job": uuid.uuid4().hex, "command": list(command), "deadline_s": deadline_s}
        return unpacked(await self._job("run", args, deadline_s))

    async def put(self, here: Path, there: PurePath) -> None:
        """Copies a file to the machine in parts; MachineError when either place cannot be used."""
        part, offset, last = uuid.uuid4().hex, 0, False
        while not last:
            data = await asyncio.to_thread(_part, here, offset)
            last = len(data) <= PART
            args = {"path": str(there), "part": part, "offset": offset, "last": last}
            await self.link.ask("put", {**args, "data": text(data[:PART])}, FILE_S)
            offset += PART

    async def get(self, there: PurePath, here: Path) -> None:
        """Copies a file from the machine; MachineError when either place cannot be used."""
        partial = here.with_name(f".kforge-{uuid.uuid4().hex}")
        offset, last = 0, False
        try:
            while not last:
                told = await self.link.ask("get", {"path": str(there), "offset": offset}, FILE_S)
                offset, last = offset + PART, bool(told["last"])
                await asyncio.to_thread(_add, partial, content(told["data"]))
            await asyncio.to_thread(partial.replace, here)
        finally:
            with suppress(OSError):
                partial.unlink()

    @asynccontextmanager
    async def lease(self, device: Device) -> AsyncIterator[None]:
        """Exclusive use of the device on its host; the host gives it back when we are gone."""
        name, key = uuid.uuid4().hex, (device.target, device.index)
        try:
            await self.link.ask("lease", {"lease": name, "device": encode(device)}, QUEUE_S)
            self._held[key] = name
            yield
        finally:
            if self._held.get(key) == name:
                del self._held[key]
            with suppress(MachineError):
                await asyncio.shield(self.link.ask("release", {"lease": name}, CANCEL_S))

    @asynccontextmanager
    async def turn(self, device: Device) -> AsyncIterator[None]:
        """What is asked inside goes ahead and waits for the device on its host."""
        before = _turn.get()
        _turn.set(device)
        try:
            yield
        finally:
            _turn.set(before)

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """The answer of the judge there. Equal requests of one scope are one job, done once."""
        given = encode(args)
        key = hashlib.sha256(
            json.dumps([self._scope, identity(), op, given], sort_keys=True).encode()
        ).hexdigest()[:32]
        with self._lock:
            turn = self._asked[key] = self._asked.get(key, -1) + 1
        try:
            return await self._judge(f"{key}-{turn}", op, given, deadline_s)
        finally:
            with self._lock:
                self._asked[key] -= 1
                if self._asked[key] < 0:
                    del self._asked[key]

    async def facts(self, deadline_s: float) -> dict[str, Any]:
        """What the host says of itself."""
        told: dict[str, Any] = await self.link.ask("facts", {}, deadline_s)
        return told

    def close(self) -> None:
        """Ends the link; the host's resident ends by itself when nobody else wants it."""
        if self._collected:
            self.link.tell("collected", {"jobs": list(self._collected)})
            self._collected.clear()
        self.link.close()

    async def _judge(self, job: str, op: str, given: Any, deadline_s: float) -> Any:
        if job in self._collected:  # asked anew, not again
            self._collected.remove(job)
            self.link.tell("collected", {"jobs": [job]})
        device = given.get("device") if op == "measure" else None
        lease = self._held.get((device["target"], device["index"])) if device else None
        args = {"job": job, "ask": op, "with": given, "deadline_s": deadline_s, "lease": lease}
        value = await self._job("judge", args, deadline_s)
        self._collected.append(job)
        if len(self._collected) > UNCOLLECTED:
            self.link.tell("collected", {"jobs": [self._collected.popleft()]})
        return value

    async def _job(self, op: str, args: dict[str, Any], deadline_s: float) -> Any:
        """Its value; a job that we do not wait for any longer is ended there."""
        order = {"job": args["job"]}
        if (device := _turn.get()) is not None:
            args, deadline_s = {**args, "turn": encode(device)}, QUEUE_S + deadline_s
        try:
            value = await self.link.ask(op, args, deadline_s)
        except MachineError:
            self.link.tell("cancel", order)
            raise
        except asyncio.CancelledError:
            with suppress(MachineError):
                await asyncio.shield(self.link.ask("cancel", order, CANCEL_S))
            raise
        if op == "run":
            self.link.tell("collected", {"jobs": [args["job"]]})
        return value


def _part(path: Path, offset: int) -> bytes:
    """One byte more than a part, so that the last one is known."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(PART + 1)
    except OSError as error:
        raise MachineError(f"cannot read {path}: {error.strerror}") from None


def _add(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror}") from None
