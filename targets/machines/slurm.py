"""A batch system behind its login host: jobs are submitted, watched and cancelled with its tools.

The nodes share a folder with the login host. Tested against scripts that behave as `sbatch`,
`squeue` and `scancel` do (`tests/targets/machines/batch.py`), not yet against a real cluster.
"""

import asyncio
import json
import re
import shlex
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from data.codec import encode
from data.errors import MachineError
from data.records import Device
from targets.machines.base import Machine
from targets.machines.exchange import unpacked
from targets.machines.judged import Judged
from targets.remote.command import Completed

TOOL_S = 30.0
POLL_S = 1.0
QUEUE_S = 24 * 3600.0
"""How long a job may wait for a node."""
START_S = 60.0
"""Above a job's own deadline: Python starts on the node."""
SETTLE_S = 15.0
"""A shared folder shows a node's file later than the node's end."""
GONE = re.compile(r"Invalid job id", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Where jobs lie and how they are submitted."""

    folder: PurePath
    """Shared by login host and nodes."""
    code: PurePath
    """Our code there."""
    python: str = "python3"
    options: tuple[str, ...] = ()
    """For sbatch, such as `--partition=gpu` and `--gres=gpu:1`."""


class SlurmMachine(Judged):
    """Usable from any thread and any event loop; each request is a job with a node of its own."""

    def __init__(self, name: str, login: Machine, batch: Batch) -> None:
        self.name, self._login, self._batch = name, login, batch

    async def run(self, command: tuple[str, ...], deadline_s: float) -> Completed:
        """How the command ended on a node, with nothing of it left."""
        request = {"command": list(command), "deadline_s": deadline_s}
        return unpacked(await self._job(request, deadline_s))

    async def put(self, here: Path, there: PurePath) -> None:
        """Copies a file to the login host, whose folders the nodes share."""
        await self._login.put(here, there)

    async def get(self, there: PurePath, here: Path) -> None:
        """Copies a file from the login host."""
        await self._login.get(there, here)

    @asynccontextmanager
    async def lease(self, _: Device) -> AsyncIterator[None]:
        """Nothing to wait for: the batch system hands nodes out, the job takes the node's lease."""
        yield

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """The answer of a judge on a node."""
        request = {"ask": op, "with": encode(args), "deadline_s": deadline_s}
        return await self._job(request, deadline_s)

    def close(self) -> None:
        """Ends the link to the login host."""
        self._login.close()

    async def _job(self, request: dict[str, Any], deadline_s: float) -> Any:
        folder = self._batch.folder / uuid.uuid4().hex
        await self._write(folder / "request.json", json.dumps(request))
        await self._write(folder / "job.sh", self._script(folder))
        number = await self._submit(folder, deadline_s)
        try:
            await self._watch(number, deadline_s)
            told = await self._answer(folder, number)
        except BaseException:
            await asyncio.shield(self._cancel(number))
            raise
        finally:
            with suppress(MachineError):
                await asyncio.shield(self._login.run(("rm", "-rf", str(folder)), TOOL_S))
        if "error" in told:
            raise MachineError(f"{self.name}: {told['error']}")
        return told["value"]

    def _script(self, folder: PurePath) -> str:
        cache = self._batch.folder / "cache"
        words = (self._batch.python, "-m", "targets.machines.once")
        files = (folder / "request.json", folder / "answer.json", cache)
        line = shlex.join((*words, *map(str, files)))
        code = shlex.quote(str(self._batch.code))
        return f"#!/bin/sh\ncd {code} && export PYTHONPATH={code} && exec {line}\n"

    async def _submit(self, folder: PurePath, deadline_s: float) -> str:
        """The number of the job. MachineError with the tool's own words."""
        minutes = int((deadline_s + START_S) / 60) + 1
        told = await self._tool(
            *("sbatch", "--parsable", f"--time={minutes}", "--job-name=kforge"),
            *(f"--output={folder / 'log'}", *self._batch.options, str(folder / "job.sh")),
        )
        number = told.out.decode(errors="replace").strip().partition(";")[0]
        if told.code or not number.isdigit():
            raise MachineError(f"{self.name}: sbatch refused the job: {_said(told)}")
        return number

    async def _watch(self, number: str, deadline_s: float) -> None:
        """Returns when the job is over; MachineError when it waits or runs too long."""
        queued, started = time.monotonic(), None
        while (state := await self._state(number)) is not None:
            now = time.monotonic()
            if started is None and state != "PENDING":
                started = now
            if started is None and now - queued > QUEUE_S:
                raise MachineError(f"{self.name}: job {number} got no node in {QUEUE_S:.0f} s")
            if started is not None and now - started > deadline_s + START_S:
                raise MachineError(f"{self.name}: job {number} did not end in {deadline_s:.0f} s")
            await asyncio.sleep(POLL_S)

    async def _state(self, number: str) -> str | None:
        """As squeue says it; None when the job is over."""
        told = await self._tool("squeue", "--noheader", "--format=%T", f"--jobs={number}")
        if told.code and not GONE.search(_said(told)):
            raise MachineError(f"{self.name}: squeue: {_said(told)}")
        state = told.out.decode(errors="replace").strip() if not told.code else ""
        return state or None

    async def _answer(self, folder: PurePath, number: str) -> dict[str, Any]:
        """What the job wrote; MachineError when it ended without: preempted, or its node died."""
        with tempfile.TemporaryDirectory() as place:
            until = time.monotonic() + SETTLE_S
            while time.monotonic() < until:
                with suppress(MachineError):
                    await self._login.get(folder / "answer.json", Path(place, "answer"))
                    told: dict[str, Any] = json.loads(Path(place, "answer").read_bytes())  # noqa: ASYNC240
                    return told
                await asyncio.sleep(POLL_S)
        log = await self._login.run(("tail", "-n", "1", str(folder / "log")), TOOL_S)
        raise MachineError(
            f"{self.name}: job {number} ended without an answer: preempted, or its node failed"
            f" ({_said(log)})"
        )

    async def _cancel(self, number: str) -> None:
        """Ends the job and waits until squeue knows it no more."""
        with suppress(MachineError):
            await self._tool("scancel", number)
            until = time.monotonic() + SETTLE_S
            while time.monotonic() < until:
                if await self._state(number) is None:
                    return
                await asyncio.sleep(POLL_S / 5)

    async def _tool(self, *words: str) -> Completed:
        return await self._login.run(words, TOOL_S)

    async def _write(self, path: PurePath, text: str) -> None:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            await self._login.put(Path(file.name), path)


def _said(told: Completed) -> str:
    """The last line of what a tool printed."""
    lines = (told.err or told.out).decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "nothing was said"
