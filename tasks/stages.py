"""The loop's stages, joined from agents, target and machine; the same here and in the archive."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from agents.loop import Stages
from data.records import (
    Admission,
    BuildResult,
    Contract,
    Device,
    Iteration,
    MeasureJob,
    Operator,
    Pair,
    Profile,
    RunResult,
)
from targets import roofline
from targets.machines.judged import admission, building, measuring
from targets.remote.jobs import Ask
from tasks.lease import leased
from tasks.offline import Agents
from tasks.retry import patiently

Keep = Callable[[Iteration], Awaitable[None]]


class Machine(Protocol):
    """What a pair, or a judgement, needs of the machine that holds the device."""

    async def admit(
        self, operator: Operator, contract: Contract, device: Device, *, timed: bool = False
    ) -> Admission: ...

    async def build(self, operator: Operator, source: str, device: Device) -> BuildResult: ...

    async def measure(self, job: MeasureJob) -> RunResult: ...

    def expect(self, asks: Sequence[Ask]) -> None: ...

    def turn(self, device: Device) -> AbstractAsyncContextManager[object]: ...


def now() -> str:
    """The time as rows hold it: UTC, microseconds, sortable as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def stages_for(agents: Agents, machine: Machine, keep: Keep) -> Stages:
    """What `agents.loop.port` asks of the world for one pair; `keep` puts a step on record.

    The device is leased while something is timed on it, not while operators are probed or sources
    compiled.
    """

    async def admit(pair: Pair) -> Admission:
        terms = pair.operator, pair.contract, pair.device
        machine.expect([admission(*terms, timed=timed) for timed in (False, True)])
        probe = partial(machine.admit, *terms)
        found = await patiently(probe)
        if not found.admitted:
            return found
        return await leased(machine, pair.device, partial(probe, timed=True))

    built: set[str] = set()

    async def compiled(operator: Operator, source: str, device: Device) -> BuildResult:
        built.add(source)
        return await patiently(partial(machine.build, operator, source, device))

    async def build(job: MeasureJob) -> BuildResult:
        if job.device.execution != "none":
            machine.expect([building(job.operator, job.source, job.device), measuring(job)])
        return await compiled(job.operator, job.source, job.device)

    async def measure(job: MeasureJob) -> RunResult:
        for source in filter(None, (job.source, job.parent_source)):
            if source not in built:  # another machine did, or one whose cache was cleared
                await compiled(job.operator, source, job.device)
        return await leased(machine, job.device, partial(machine.measure, job))

    return Stages(
        admit=admit,
        propose=agents.propose,
        build=build,
        measure=measure,
        profile=profile,
        advise=agents.advise,
        record=keep,
        now=now,
    )


def profile(admission: Admission, iteration: Iteration) -> Profile:
    """What the analyst reads of a right candidate: the official shape's numbers."""
    assert iteration.build is not None
    assert iteration.run is not None
    timed = next((t.shape for t in iteration.run.timings), None)
    shape = next((s for s in admission.shapes if s.name == timed), admission.official)
    assert shape is not None
    return roofline.profile(admission, shape, iteration.build, iteration.run)
