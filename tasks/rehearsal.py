"""What will be asked of a judge, found by going through it with answers that refuse nothing."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from data.codec import encode
from data.records import Admission, BuildResult, Device, RunResult, RunStatus
from targets.machines.judged import Judged
from targets.machines.spool import SpoolMachine
from targets.remote.jobs import Ask
from tasks.judgement import Terms, on, rulings
from tasks.subjects import Subject

ANSWERS: Mapping[str, Any] = {
    "admit": encode(Admission(outcome=None, reason="")),
    "build": encode(BuildResult(ok=True, route="launcher")),
    "measure": encode(RunResult(status=RunStatus.RAN)),
}


class Rehearsal(Judged):
    """A machine that only remembers what it was asked."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """An answer after which the next question follows."""
        del deadline_s
        self.asks.append(Ask(op=op, args=encode(args)))
        return ANSWERS[op]

    @asynccontextmanager
    async def lease(self, device: Device) -> AsyncIterator[None]:
        """Nothing is used."""
        del device
        yield


async def rehearse(machine: SpoolMachine, given: tuple[Subject, ...], terms: Terms) -> None:
    """Posts all that judging the files will ask, before the first answer is waited for."""
    rehearsal = Rehearsal()
    async for _ in rulings(on(rehearsal, machine.device), given, terms):
        pass
    machine.expect(rehearsal.asks)
