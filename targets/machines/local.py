"""The machine at hand: plain subprocesses, one judge server, leases by lock files.

It serves a controller in this process, and on a remote host the controllers that reach it there
(`resident.py`): both run commands, judge and lease in the same way.
"""

import asyncio
import logging
import shutil
import threading
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path, PurePath
from typing import Any

from data.errors import MachineError
from data.records import Device
from targets import ON_PROCESSOR
from targets.machines.judge_server import JudgeServer, ServerDied
from targets.machines.judged import Judged
from targets.remote.command import Command, Completed
from targets.remote.lease import BEAT_S, FOLDER, HOLD_S, Lease
from targets.remote.occupants import occupants

POLL_S = 0.02
REPORT_S = 10.0
FOREIGN_S = 60.0
"""How long a leased device may be used by somebody without a lease before we give up."""
LOOK_S = 2.0
LOOKED_S = 10.0
PROCESSOR = "cpu-0"
"""The lease of all that runs on the processor; an emulated device's threads would spoil a time."""

_LOG = logging.getLogger("kforge.machines")


class LocalMachine(Judged):
    """The host that this process runs on; usable from any thread and any event loop."""

    def __init__(self, cache: Path, *, locks: Path = FOLDER, name: str = "local") -> None:
        self.name = name
        self._cache = cache.resolve()
        self._locks = locks
        self._server: JudgeServer | None = None
        self._starting = threading.Lock()
        self._queues: dict[tuple[int, str], asyncio.Lock] = {}
        self._looked: dict[str, float] = {}
        """When a device was last seen to be nobody else's."""

    async def run(self, command: tuple[str, ...], deadline_s: float) -> Completed:
        """How the command ended, with nothing of it left; MachineError when it is not there.

        When the caller is cancelled the command is killed first.
        """
        return await self.finish(Command(command, job=uuid.uuid4().hex), deadline_s)

    async def finish(self, started: Command, deadline_s: float) -> Completed:
        """How a started command ended; it is killed when the caller is cancelled."""
        ending = asyncio.ensure_future(asyncio.to_thread(started.wait, deadline_s))
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            started.cancel()
            await ending
            raise

    async def put(self, here: Path, there: PurePath) -> None:
        """Copies a file; MachineError when either place cannot be used."""
        await asyncio.to_thread(_copy, here, Path(there))

    async def get(self, there: PurePath, here: Path) -> None:
        """Copies a file; MachineError when either place cannot be used."""
        await asyncio.to_thread(_copy, Path(there), here)

    @asynccontextmanager
    async def lease(self, device: Device) -> AsyncIterator[None]:
        """Exclusive use of the device on this host; waits, and says from 10 s on for whom.

        The pairs of this process queue first; of each process one stands in the host's queue.
        MachineError when somebody without a lease goes on using the device, and for the caller when
        it did not give the device back in four hours.
        """
        own = device.timed and device.target not in ON_PROCESSOR
        key = f"{device.target}-{device.index}" if own else PROCESSOR
        async with self._queue(key):
            lease = Lease(key, f"timing for {device.name}", folder=self._locks)
            try:
                await _taken(lease, device.name)
                if device.timed:
                    await self._alone(key, device)
                async with _bounded(device.name), _beating(lease):
                    yield
            finally:
                lease.release()

    async def _alone(self, key: str, device: Device) -> None:
        """Looks for foreign hands unless that was done just now: the tools take up to a second."""
        looked = self._looked.get(key)
        if looked is None or time.monotonic() - looked > LOOKED_S:
            await _alone(device)
            self._looked[key] = time.monotonic()

    def _queue(self, name: str) -> asyncio.Lock:
        """The queue of a device; an asyncio lock belongs to the loop that waits for it."""
        return self._queues.setdefault((id(asyncio.get_running_loop()), name), asyncio.Lock())

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """The server's answer; a server that died is started again, once a request."""
        try:
            return await (await self._running()).ask(op, args, deadline_s)
        except ServerDied as error:
            _LOG.warning("%s; started again", error)
        return await (await self._running()).ask(op, args, deadline_s)

    def close(self) -> None:
        """Ends the judge server and all its children."""
        with self._starting:
            if self._server is not None:
                self._server.close()
                self._server = None

    async def _running(self) -> JudgeServer:
        return await asyncio.to_thread(self._start)

    def _start(self) -> JudgeServer:
        with self._starting:
            if self._server is not None and not self._server.alive:
                self._server.close()
                self._server = None
            if self._server is None:
                self._server = JudgeServer(self._cache)
            return self._server


def _copy(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    except OSError as error:
        raise MachineError(f"cannot copy {source} to {target}: {error.strerror}") from None


@asynccontextmanager
async def _bounded(device: str) -> AsyncIterator[None]:
    """MachineError in the midst of the context when it takes longer than anything may."""
    limit = asyncio.timeout(HOLD_S)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise MachineError(f"{device} was held for more than {HOLD_S:.0f} s") from None


@asynccontextmanager
async def _beating(lease: Lease) -> AsyncIterator[None]:
    """The lease shows signs of life while the context is open."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            lease.beat()

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait({beating})


async def _taken(lease: Lease, device: str) -> None:
    """Waits for the lease without blocking the event loop; says so ever more rarely."""
    started, silent_s = time.monotonic(), REPORT_S
    while not lease.take():
        await asyncio.sleep(POLL_S)
        waited = time.monotonic() - started
        if waited > silent_s:
            silent_s *= 2
            _LOG.info("waiting for %s since %.0f s; held by %s", device, waited, lease.holder())


async def _alone(device: Device) -> None:
    """Waits until nobody uses the leased device by hand; MachineError that names who does."""
    until = time.monotonic() + FOREIGN_S
    while others := await asyncio.to_thread(occupants, device.target, device.index):
        who = "; ".join(map(str, others))
        if time.monotonic() > until:
            raise MachineError(f"{device.name} is used without a lease by {who}; ask them to stop")
        _LOG.warning("%s is used without a lease by %s; waiting", device.name, who)
        await asyncio.sleep(LOOK_S)
