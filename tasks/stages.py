"""The loop's stages, joined from agents, target, machine and ledger; shared by both engines."""

from agents.loop import Stages
from data.records import (
    Admission,
    BuildResult,
    Candidate,
    Iteration,
    MeasureJob,
    Pair,
    Profile,
    RunResult,
)
from data.store import Ledger
from targets import TARGETS
from targets.machines.local import LocalMachine
from tasks.generate import Agents
from tasks.record import now, record
from tasks.retry import patiently


def stages_for(agents: Agents, machine: LocalMachine, ledger: Ledger) -> Stages:
    """What `agents.loop.port` asks of the world for one pair."""

    async def admit(pair: Pair) -> Admission:
        async with machine.lease(pair.device):
            return await patiently(lambda: machine.admit(pair.operator, pair.contract, pair.device))

    async def build(pair: Pair, candidate: Candidate) -> BuildResult:
        async with machine.lease(pair.device):
            return await patiently(
                lambda: machine.build(pair.operator, candidate.source, candidate.language)
            )

    async def measure(job: MeasureJob) -> RunResult:
        async with machine.lease(job.device):
            return await patiently(lambda: machine.measure(job))

    async def keep(iteration: Iteration) -> None:
        await record(ledger, iteration)

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
    shapes = {s.name: s for s in admission.shapes}
    timed = iteration.run.timings[0].shape if iteration.run.timings else next(iter(shapes))
    target = TARGETS[iteration.device.target]
    return target.profile(admission, shapes[timed], iteration.build, iteration.run)
