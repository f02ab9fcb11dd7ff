"""The process on a host that does its jobs for controllers elsewhere, and outlives their links.

`python -m targets.machines.resident ROOT SOCKET` reads and writes lines of JSON on a unix socket:
`{"id": 1, "op": "judge", "args": {...}}`, answered by `{"id": 1, "ok": true, "value": ...}` or
`{"id": 1, "ok": false, "error": "one line"}`. A job has an id of the controller's choice and is
done once: who asks for it again gets the same answer, until it is acknowledged. One resident serves
a user and a version of KForge; it ends when nobody has wanted anything for a while.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.codec import decode
from data.errors import MachineError
from data.records import Device
from targets.machines.exchange import content, packed, read_part
from targets.machines.facts import facts
from targets.machines.jobs import Jobs
from targets.machines.local import LocalMachine
from targets.machines.uploads import Part, Uploads
from targets.remote.command import Command

LINE = 1 << 28
"""Longest request; a job with its sources is far smaller, a part of a file is 1 MiB."""
SILENT_S = 60.0
"""A controller says something every 5 s; one that does not is gone, with its link still open."""
GRACE_S = 10.0
"""How long a lease outlives its controller's link when none of its jobs runs."""
ABSENT_S = 120.0
"""A controller seeks a broken link for 90 s; what waits for it any longer is nobody's."""
IDLE_S = 300.0
SWEEP_S = 1.0

_LOG = logging.getLogger("kforge.resident")


@dataclass(slots=True)
class Held:
    """A lease that a controller asked for."""

    client: str
    task: asyncio.Task[None]
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    jobs: int = 0
    """Running under it."""


class Resident:
    """Jobs, leases and files of this host."""

    def __init__(self, root: Path, machine: LocalMachine) -> None:
        self._root, self._machine = root, machine
        self._jobs, self._uploads = Jobs(root / "jobs"), Uploads()
        self._leases: dict[str, Held] = {}
        self._links: dict[str, int] = {}
        """Open connections by client."""
        self._seen: dict[str, float] = {}
        """When a client was last connected."""
        self._busy_at = time.monotonic()
        self._over = asyncio.Event()
        self._ops: dict[str, Callable[[str, dict[str, Any]], Awaitable[Any]]] = {
            "ping": self._ping,
            "judge": self._judge,
            "run": self._run,
            "cancel": self._cancel,
            "collected": self._collected,
            "lease": self._lease,
            "release": self._release,
            "put": self._put,
            "get": self._get,
            "facts": self._facts,
            "retire": self._retire,
        }

    async def serve(self, socket: Path) -> None:
        """Until it is stopped, or until nobody has wanted anything for a while."""
        server = await asyncio.start_unix_server(self._link, socket, limit=LINE)
        sweep = asyncio.create_task(self._sweep())
        await self._over.wait()
        sweep.cancel()
        server.close()
        with contextlib.suppress(OSError):
            os.unlink(socket)  # noqa: PTH108 (nothing blocks here)
        await self._jobs.close()
        self._uploads.drop()
        for held in list(self._leases.values()):
            held.task.cancel()
        self._machine.close()

    def stop(self) -> None:
        """Has `serve` end all that runs and return."""
        self._over.set()

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; what it asks is answered as it is done, in any order."""
        client, tasks, lock = "", set[asyncio.Task[None]](), asyncio.Lock()
        with contextlib.suppress(OSError, ValueError, KeyError, TimeoutError):
            hello = json.loads(await asyncio.wait_for(reader.readline(), SILENT_S))
            client = str(hello["client"])
            self._links[client] = self._links.get(client, 0) + 1
            while line := await asyncio.wait_for(reader.readline(), SILENT_S):
                task = asyncio.create_task(self._answer(client, json.loads(line), writer, lock))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        for task in tasks:
            task.cancel()
        if client:
            self._links[client] -= 1
            self._seen[client] = self._busy_at = time.monotonic()
        writer.close()

    async def _answer(
        self,
        client: str,
        request: dict[str, Any],
        writer: asyncio.StreamWriter,
        lock: asyncio.Lock,
    ) -> None:
        answer: dict[str, Any] = {"id": request["id"]}
        try:
            value = await self._ops[request["op"]](client, request["args"])
            answer |= {"ok": True, "value": value}
        except MachineError as error:
            answer |= {"ok": False, "error": str(error)}
        except OSError as error:
            answer |= {"ok": False, "error": f"{error.strerror}: {error.filename or self._root}"}
        except (KeyError, TypeError, ValueError) as error:
            answer |= {"ok": False, "error": f"a request that cannot be meant: {error!r}"}
        async with lock:
            with contextlib.suppress(OSError):
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()

    async def _ping(self, _: str, args: dict[str, Any]) -> Any:
        return args

    async def _judge(self, _: str, args: dict[str, Any]) -> Any:
        """A judge's answer."""

        async def work(_: Path) -> Any:
            async with self._device(args):
                return await self._machine.judge(args["ask"], args["with"], args["deadline_s"])

        return await self._jobs.answer(args["job"], work, resumed=bool(args.get("resumed")))

    async def _run(self, _: str, args: dict[str, Any]) -> Any:
        words = tuple(map(str, args["command"]))

        async def work(folder: Path) -> Any:
            async with self._device(args):
                command = Command(words, job=args["job"])
                self._jobs.note(folder, command.pid)
                return packed(await self._machine.finish(command, float(args["deadline_s"])))

        return await self._jobs.answer(args["job"], work, resumed=bool(args.get("resumed")))

    async def _cancel(self, _: str, args: dict[str, Any]) -> None:
        await self._jobs.cancel(args["job"])

    async def _collected(self, _: str, args: dict[str, Any]) -> None:
        for job in args["jobs"]:
            self._jobs.forget(job)

    @contextlib.asynccontextmanager
    async def _device(self, args: dict[str, Any]) -> AsyncIterator[None]:
        """The device that a job needs: its own turn at it, a lease that is held, or none."""
        if args.get("turn") is None:
            with self._under(args.get("lease")):
                yield
            return
        async with self._machine.lease(decode(Device, args["turn"])):
            if self._jobs.left_s(args["job"]) > ABSENT_S:
                raise MachineError("the controller was gone when the job's turn came")
            yield

    @contextlib.contextmanager
    def _under(self, lease: str | None) -> Iterator[None]:
        """Counts a job of a lease; MachineError when the lease was lost meanwhile."""
        if lease is None:
            yield
            return
        held = self._leases.get(lease)
        if held is None or not held.taken.is_set():
            raise MachineError("the device's lease was lost with the link; it is asked for again")
        held.jobs += 1
        try:
            yield
        finally:
            held.jobs -= 1

    async def _lease(self, client: str, args: dict[str, Any]) -> None:
        """Returns when the device is held for the client; asking again is no second wish."""
        name = args["lease"]
        if name not in self._leases:
            task = asyncio.create_task(self._hold(name, decode(Device, args["device"])))
            self._leases[name] = Held(client, task)
        held = self._leases[name]
        taken = asyncio.create_task(held.taken.wait())
        try:
            await asyncio.wait({taken, held.task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            taken.cancel()
        if not held.taken.is_set():
            await held.task

    async def _hold(self, name: str, device: Device) -> None:
        held = self._leases[name]
        try:
            async with self._machine.lease(device):
                held.taken.set()
                await held.over.wait()
        finally:
            self._leases.pop(name, None)

    async def _release(self, _: str, args: dict[str, Any]) -> None:
        await self._let_go(args["lease"])

    async def _let_go(self, name: str) -> None:
        held = self._leases.get(name)
        if held is None:
            return
        held.over.set()
        if not held.taken.is_set():
            held.task.cancel()
        await asyncio.wait({held.task})

    async def _put(self, _: str, args: dict[str, Any]) -> None:
        part = Part(
            path=Path(args["path"]),
            name=args["part"],
            offset=int(args["offset"]),
            data=content(args["data"]),
            last=args["last"],
        )
        await self._uploads.take(part)

    async def _get(self, _: str, args: dict[str, Any]) -> Any:
        return await asyncio.to_thread(read_part, Path(args["path"]), int(args["offset"]))

    async def _facts(self, _: str, __: dict[str, Any]) -> Any:
        return await asyncio.to_thread(facts, self._root)

    async def _retire(self, client: str, _: dict[str, Any]) -> Any:
        """Ends the resident unless somebody else is connected."""
        others = sum(n for c, n in self._links.items() if c != client)
        if not others:
            asyncio.get_running_loop().call_later(0.2, self.stop)
        return {"others": others, "pid": os.getpid()}

    async def _sweep(self) -> None:
        """Gives back what absent controllers hold; ends a resident that nobody needs."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now = time.monotonic()
            self._jobs.beat()
            for name, held in list(self._leases.items()):
                gone = now - self._seen.get(held.client, now)
                if not self._links.get(held.client) and not held.jobs and gone > GRACE_S:
                    _LOG.info("the lease of a controller that is gone since %.0f s is over", gone)
                    await self._let_go(name)
            self._uploads.drop(before=now - ABSENT_S)
            if any(self._links.values()) or self._leases or self._jobs.running:
                self._busy_at = now
            if now - self._busy_at > IDLE_S:
                self.stop()


async def served(resident: Resident, socket: Path) -> None:
    """Serves until SIGTERM or SIGINT at the latest."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, resident.stop)
    await resident.serve(socket)


def main(root: Path, socket: Path) -> None:
    """The process itself; what it says goes to `resident.log`."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    os.umask(0o022)  # a candidate runs as another user and has to read what was compiled for it
    asyncio.run(served(Resident(root, LocalMachine(root / "cache")), socket))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
