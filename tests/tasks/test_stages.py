"""What the stages ask of a machine, and when they hold its device."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from data.errors import MachineError
from data.records import (
    Admission,
    BuildResult,
    Contract,
    Device,
    Iteration,
    MeasureJob,
    Operator,
    RunResult,
    RunStatus,
)
from data.verdict import Outcome
from targets.remote.jobs import Ask
from tasks.offline import Offline
from tasks.stages import stages_for
from tests.agents.fakes import pair

PAIR = pair()
JOB = MeasureJob(
    operator=PAIR.operator, device=PAIR.device, contract=PAIR.contract, source="", pairs=1
)


class Bench:
    """A machine that remembers what was asked, and whether its device was held meanwhile."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self.outcome, self.leases, self.held = outcome, 0, False
        self.asked: list[tuple[str, bool]] = []

    async def admit(
        self, operator: Operator, contract: Contract, device: Device, *, timed: bool = False
    ) -> Admission:
        self.asked.append(("time" if timed else "probe", self.held))
        return Admission(outcome=self.outcome, reason="so")

    def expect(self, asks: Sequence[Ask]) -> None: ...

    async def build(self, operator: Operator, source: str, device: Device) -> BuildResult:
        self.asked.append(("build", self.held))
        return BuildResult(ok=True, route="launcher")

    async def measure(self, job: MeasureJob) -> RunResult:
        self.asked.append(("measure", self.held))
        return RunResult(status=RunStatus.RAN)

    @asynccontextmanager
    async def turn(self, device: Device) -> AsyncIterator[None]:
        self.leases, self.held = self.leases + 1, True
        try:
            yield
        finally:
            self.held = False


async def _kept(_: Iteration) -> None:
    """Nothing is put on record here."""


async def test_only_what_is_timed_holds_the_device() -> None:
    """Compilers and probes of an operator hold up no other pair."""
    bench = Bench()
    stages = stages_for(Offline(0), bench, _kept)
    await stages.admit(PAIR)
    await stages.build(JOB)
    await stages.measure(JOB)
    assert bench.asked == [("probe", False), ("time", True), ("build", False), ("measure", True)]


async def test_an_operator_that_is_refused_is_not_timed() -> None:
    """The device is not asked for at all."""
    bench = Bench(Outcome.NOT_ADMITTED)
    assert not (await stages_for(Offline(0), bench, _kept).admit(PAIR)).admitted
    assert bench.asked == [("probe", False)]
    assert not bench.leases


async def test_a_lease_that_was_lost_is_taken_anew() -> None:
    """The link broke and the host gave the device away: the second try is not under the old one."""

    class Cut(Bench):
        async def measure(self, job: MeasureJob) -> RunResult:
            if self.leases == 1:
                raise MachineError("the device's lease was lost with the link")
            return await super().measure(job)

    bench = Cut()
    assert (await stages_for(Offline(0), bench, _kept).measure(JOB)).status is RunStatus.RAN
    assert (bench.leases, bench.asked) == (2, [("measure", True)])


async def test_what_another_machine_built_is_built_before_it_is_timed() -> None:
    """A pair has moved: its candidate and the parent were compiled on the machine that died."""
    bench = Bench()
    await stages_for(Offline(0), bench, _kept).measure(
        replace(JOB, source="child", parent_source="parent")
    )
    assert bench.asked == [("build", False), ("build", False), ("measure", True)]
