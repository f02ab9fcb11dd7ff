"""`kforge-remote.pyz work DIR`: does the jobs of a spool on this machine.

Any number of these may share a folder. Each claims a job, puts every finished step on record at
once and stops in time: what was not finished is done by whoever comes next, from the last step on.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agents import loop
from data.errors import MachineError
from data.records import Device, Iteration
from targets import TARGETS
from targets.base import Capabilities, Target
from targets.machines.local import LocalMachine
from targets.remote import pack
from targets.remote.claims import Claim, Lost
from targets.remote.compiler import installed
from targets.remote.jobs import Job, Refused, Row
from targets.remote.spool import Spool
from tasks.offline import Offline
from tasks.remote.judging import answer_all
from tasks.stages import stages_for

LOOK_S = 2.0
"""Between looks at jobs that others hold."""
CLOSING_S = 5.0
"""Of the time that was given: to end the judge and to write the tar."""
RESULTS = "results.tar"

Say = Callable[[str], None]


@dataclass(kw_only=True)
class Worker:
    """One process at work on a spool."""

    spool: Spool
    archive: str
    machine: LocalMachine
    device: str | None = None
    """Name of the only device to work for; None for every one that is here."""
    say: Say = field(default=partial(print, file=sys.stderr, flush=True))
    failed: dict[str, str] = field(default_factory=dict)
    """Jobs that the world stopped, with the reason."""
    _told: set[str] = field(default_factory=set)

    async def run(self, seconds: float | None) -> int:
        """Works until all is done or the time is up; 0 unless the world failed a job."""
        work = asyncio.ensure_future(self._all())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        limit = None if seconds is None else max(seconds - CLOSING_S, 0.1)
        await asyncio.wait({work}, timeout=limit)
        cut = not work.done()
        if cut:
            work.cancel()
            await asyncio.wait({work})
        self.machine.close()
        if not work.cancelled() and (error := work.exception()):
            raise error
        if work.cancelled():
            self.say("the time is up" if cut else "told to stop")
        return self._close()

    async def _all(self) -> None:
        while True:
            progress = False
            for job in self._open():
                claim = self.spool.claims.take(job.id)
                if claim is not None:
                    progress = True
                    await self._do(job, claim)
            if not progress and not self._may_fall_free():
                return
            if not progress:
                await asyncio.sleep(LOOK_S)

    def _open(self) -> Iterator[Job]:
        """Jobs to do here, looked up one by one: others work meanwhile."""
        for name in self.spool.ids():
            job = self._mine(name)
            if job is not None and name not in self.failed and not self.spool.ended(job):
                yield job

    def _mine(self, name: str) -> Job | None:
        """The job, if this machine can do it; else it is said once why not."""
        try:
            job = self.spool.job(name)
        except Refused as error:
            self._tell(name, f"refused: {error}")
            return None
        if self.device is not None and job.device.name != self.device:
            return None
        if why := self._cannot(job):
            self._tell(name, f"not done here: {name}: {why}")
            return None
        return job

    def _cannot(self, job: Job) -> str:
        if job.archive != self.archive:
            return (
                f"it is for archive {job.archive}, this is {self.archive};"
                f" run kforge-remote-{job.archive}.pyz"
            )
        return cannot(job.device)

    def _may_fall_free(self) -> bool:
        """Whether a job is held by a worker of which no sign of life was seen."""
        return any(not self.spool.claims.alive(job.id) for job in self._open())

    async def _do(self, job: Job, claim: Claim) -> None:
        try:
            await (self._pair(job, claim) if job.pair else self._judge(job, claim))
            self.spool.end(job)
            self.say(f"{self._count()} {job.id}: done")
        except Lost:
            self.say(f"{job.id}: another worker has taken it over")
            return
        except MachineError as error:
            self.failed[job.id] = str(error)
            self.say(f"{job.id}: failed: {error}")
        finally:
            claim.park()
            self._pass_on_refusals()

    async def _pair(self, job: Job, claim: Claim) -> None:
        """The offline loop from the first step that is not on record."""
        assert job.pair is not None
        rows = self.spool.rows(job)
        known = tuple(row.iteration for row in rows if row.iteration is not None)
        self.say(f"{self._count()} {job.pair.name}: {len(known)} steps on record")

        async def keep(step: Iteration) -> None:
            claim.check()
            self._put(job, step.move.step, iteration=step)
            self.say(f"{job.pair.name if job.pair else ''}: {told(step)}")

        stages = stages_for(Offline(job.pair.settings.seed), self.machine, keep)
        await loop.port(job.pair, stages, known)

    async def _judge(self, job: Job, claim: Claim) -> None:
        known = tuple(row.answer for row in self.spool.rows(job))

        async def keep(number: int, answer: Any) -> None:
            claim.check()
            self._put(job, number, answer=answer)
            self.say(f"{job.id}: answer {number + 1} of {len(job.asks)}")

        await answer_all(job, self.machine, known, keep)

    def _put(
        self, job: Job, number: int, *, iteration: Iteration | None = None, answer: Any = None
    ) -> None:
        row = Row(
            job=job.id, number=number, archive=self.archive, iteration=iteration, answer=answer
        )
        self.spool.put_row(row)

    def _close(self) -> int:
        """Writes the tar and says how things stand."""
        place = self.spool.folder / RESULTS
        pack.write(place, results(self.spool))
        self._pass_on_refusals()
        self.say(f"{self._count()} jobs are done; what there is lies in {place}")
        if any(self._open()) or self.failed:
            self.say("the same command goes on where this one ended")
        return 1 if self.failed else 0

    def _count(self) -> str:
        names = self.spool.ids()
        return f"[{sum(self._ended(n) for n in names)}/{len(names)}]"

    def _ended(self, name: str) -> bool:
        try:
            return self.spool.ended(self.spool.job(name))
        except Refused:
            return False

    def _pass_on_refusals(self) -> None:
        for line in self.spool.refusals():
            self.say(line)

    def _tell(self, name: str, line: str) -> None:
        if name not in self._told:
            self._told.add(name)
            self.say(line)


def cannot(device: Device) -> str:
    """Why nothing can be executed for the device on this machine; empty when it can."""
    target = TARGETS.get(device.target)
    if target is None:
        return f"no target {device.target!r} in this archive; it has {', '.join(TARGETS)}"
    can = capabilities(target, device.language)
    return "" if can.execute else f"{device.name} needs what is not here: {can.why}"


def capabilities(target: Target, language: str = "") -> Capabilities:
    """What the target's compilers of the language and device nodes on this machine allow."""
    nodes = [node for node in target.nodes if Path(node).exists()]
    return target.capabilities(frozenset((*installed(target, language), *nodes)), language)


def told(step: Iteration) -> str:
    """A step in one line."""
    speed = f" {step.speedup:.2f}x" if step.speedup is not None else ""
    words = (f"step {step.move.step}", step.move.mode.value, step.move.lineage)
    return f"{' '.join(w for w in words if w)}: {step.verdict.value}{speed}"


def results(spool: Spool) -> dict[str, Path]:
    """All that a controller must get back: jobs, to know whose the rows are, and the rows."""
    files = [*spool.folder.glob("jobs/*.json"), *spool.folder.glob("results/*/*.jsonl")]
    return {f.relative_to(spool.folder).as_posix(): f for f in files}
