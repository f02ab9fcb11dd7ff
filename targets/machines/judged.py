"""What all machines answer through their judge: records in, records out."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from data.codec import decode, encode
from data.records import (
    Admission,
    BuildResult,
    Contract,
    Device,
    MeasureJob,
    Operator,
    RunResult,
)
from targets.remote.jobs import Ask
from targets.remote.peaks import Probe

PROBE_S = 180.0
"""Includes the server's start: importing torch takes 1.4 s idle and 14 s under load."""
ADMIT_S = 300.0
BUILD_S = 180.0
MEASURE_SLACK_S = 60.0
"""Above the job's own deadline: the judge must be the first to say that time is up."""


def admission(
    operator: Operator, contract: Contract, device: Device, *, timed: bool, insist: bool = False
) -> Ask:
    """The question of `Judged.admit`."""
    asked = {"timed": timed, "insist": insist}
    args = {"operator": operator, "contract": contract, "device": device, **asked}
    return Ask(op="admit", args=encode(args))


def building(operator: Operator, candidate_source: str, device: Device) -> Ask:
    """The question of `Judged.build`."""
    args = {"operator": operator, "candidate_source": candidate_source, "device": device}
    return Ask(op="build", args=encode(args))


def measuring(job: MeasureJob) -> Ask:
    """The question of `Judged.measure`."""
    return Ask(op="measure", args=encode(job))


class Judged:
    """The four questions to a judge on top of a machine's `judge`."""

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """The answer of the machine's judge server, plain data."""
        raise NotImplementedError

    def lease(self, device: Device) -> AbstractAsyncContextManager[None]:
        """Exclusive use of the device."""
        raise NotImplementedError

    def turn(self, device: Device) -> AbstractAsyncContextManager[None]:
        """The device for each job that is asked inside; a machine elsewhere takes them ahead."""
        return self.lease(device)

    def expect(self, asks: Sequence[Ask]) -> None:
        """What will be asked next; a machine whose answers travel takes it in one journey."""
        del asks

    async def probe(self, device: Device) -> Probe:
        """Measured peaks of the device and the environment of its numbers."""
        async with self.turn(device):
            probe: Probe = decode(Probe, await self.judge("probe", {"device": device}, PROBE_S))
        return probe

    async def admit(
        self,
        operator: Operator,
        contract: Contract,
        device: Device,
        *,
        timed: bool = False,
        insist: bool = False,
    ) -> Admission:
        """Whether the operator can tell right from wrong, its shapes and its floor.

        `timed`: the baseline's time too, for which the caller holds the device's lease. `insist`:
        one that is too large for the device is probed at a smaller shape nevertheless.
        """
        ask = admission(operator, contract, device, timed=timed, insist=insist)
        found: Admission = decode(Admission, await self.judge(ask.op, ask.args, ADMIT_S))
        return found

    async def build(self, operator: Operator, candidate_source: str, device: Device) -> BuildResult:
        """The compiler's word on a candidate; one that does not build is a value."""
        ask = building(operator, candidate_source, device)
        result: BuildResult = decode(BuildResult, await self.judge(ask.op, ask.args, BUILD_S))
        return result

    async def measure(self, job: MeasureJob) -> RunResult:
        """The evidence on a built candidate; hold the device's lease meanwhile."""
        deadline_s = job.deadline_s + MEASURE_SLACK_S
        ask = measuring(job)
        result: RunResult = decode(RunResult, await self.judge(ask.op, ask.args, deadline_s))
        return result
