"""Jobs of a host, each in a folder with its process, its heartbeat and its answer: done once."""

import asyncio
import json
import math
import re
import shutil
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import MachineError
from targets.remote import offshoots
from targets.remote.command import MARK

KEPT_S = 24 * 3600.0
"""How long an answer waits for a controller that was killed before it could collect it."""
BEAT_S = 5.0
NAME = re.compile(r"[A-Za-z0-9-]{8,64}")

Work = Callable[[Path], Awaitable[Any]]


@dataclass(slots=True)
class Job:
    """A job of this process."""

    folder: Path
    task: asyncio.Task[dict[str, Any]]
    askers: int = 0
    left_at: float = 0.0
    """When the last of them went (`time.monotonic`)."""


class Jobs:
    """By id; answers of an earlier process are found again, its running jobs are ended as lost."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._known: dict[str, Job] = {}
        self._beaten = 0.0
        clear(folder, older_than_s=KEPT_S)

    @property
    def running(self) -> int:
        return sum(not job.task.done() for job in self._known.values())

    async def answer(self, name: str, work: Work, *, resumed: bool) -> Any:
        """The job's value; it is started unless it is known. MachineError is the job's or a loss.

        A job that the caller had begun before (`resumed`) and nobody knows is lost, not repeated.
        """
        if not NAME.fullmatch(name):
            raise MachineError(f"{name!r} is no job id; expected {NAME.pattern}")
        if (kept := self._kept(name)) is not None:
            return _value(kept)
        if name not in self._known:
            if resumed:
                raise MachineError("the job was lost when the host or its processes were restarted")
            folder = self._begun(name)
            self._known[name] = Job(folder, asyncio.create_task(self._done(folder, work)))
        job = self._known[name]
        job.askers += 1
        try:
            return _value(await asyncio.shield(job.task))
        finally:
            job.askers, job.left_at = job.askers - 1, time.monotonic()

    def left_s(self, name: str) -> float:
        """For how long nobody has waited for a job of this process; 0 while somebody does."""
        job = self._known.get(name)
        if job is None:
            return math.inf
        return 0.0 if job.askers else time.monotonic() - job.left_at

    async def cancel(self, name: str) -> None:
        """Ends a job and all its processes; one that is over or unknown is no fault."""
        job = self._known.get(name)
        if job is not None and not job.task.done():
            job.task.cancel()
            await asyncio.wait({job.task})
        self.forget(name)

    def forget(self, name: str) -> None:
        """The answer was collected."""
        if NAME.fullmatch(name):
            self._known.pop(name, None)
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def note(self, folder: Path, pid: int) -> None:
        """The process group of a job: whoever clears up after a crash ends it."""
        told = {"pid": pid, "group": pid, "born": offshoots.born(pid)}
        with suppress(OSError):  # a full disk stops no job, and its mark finds it too
            (folder / "process.json").write_text(json.dumps(told))

    def beat(self) -> None:
        """Touches the heartbeat of each running job, every few seconds."""
        if time.monotonic() - self._beaten < BEAT_S:
            return
        self._beaten = time.monotonic()
        for job in self._known.values():
            if not job.task.done():
                with suppress(OSError):  # a full disk stops no job
                    (job.folder / "heartbeat").touch()

    async def close(self) -> None:
        """Ends all that runs."""
        for name in list(self._known):
            if not self._known[name].task.done():
                await self.cancel(name)

    def _begun(self, name: str) -> Path:
        folder = self._folder / name
        try:
            folder.mkdir(exist_ok=True)
            (folder / "heartbeat").write_text("beating\n")
        except OSError as error:
            raise MachineError(f"{error.strerror}: {folder}; free space there") from None
        return folder

    def _kept(self, name: str) -> dict[str, Any] | None:
        job = self._known.get(name)
        if job is not None:
            return None
        try:
            kept: dict[str, Any] = json.loads((self._folder / name / "result.json").read_bytes())
        except (OSError, ValueError):
            return None
        return kept

    async def _done(self, folder: Path, work: Work) -> dict[str, Any]:
        try:
            answer = {"value": await work(folder)}
        except MachineError as error:  # not kept: who asks again wants it tried again
            if (job := self._known.get(folder.name)) is not None and not job.askers:
                self.forget(folder.name)
            return {"error": str(error)}
        partial = folder / "result.partial"
        with suppress(OSError):  # a full disk: the answer still travels, it is only not kept
            partial.write_text(json.dumps(answer))
            partial.replace(folder / "result.json")
        return answer


def clear(folder: Path, *, older_than_s: float) -> int:
    """How many jobs were cleared away: lost ones with their processes, and forgotten answers."""
    count = 0
    for job in [p for p in folder.iterdir() if p.is_dir()]:
        result = job / "result.json"
        if result.exists() and time.time() - result.stat().st_mtime < older_than_s:
            continue
        if not result.exists():
            _end(job)
        shutil.rmtree(job, ignore_errors=True)
        count += 1
    return count


def _end(job: Path) -> None:
    """Ends what a lost job left running; a process id that was given anew is left alone."""
    group = 0
    with suppress(OSError, ValueError, KeyError):
        told = json.loads((job / "process.json").read_bytes())
        group = told["group"] if offshoots.born(told["pid"]) == told["born"] else 0
    with suppress(MachineError):
        offshoots.end(group, f"{MARK}={job.name}")


def _value(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise MachineError(answer["error"])
    return answer["value"]
