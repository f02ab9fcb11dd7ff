"""`kforge judge`: given files, a fake machine, the rulings that come out."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace

import pytest

from data.records import (
    Admission,
    BuildResult,
    Contract,
    Device,
    MeasureJob,
    Operator,
    RunResult,
    RunStatus,
)
from data.verdict import Outcome
from targets.remote.jobs import Ask
from tasks.judgement import Ruling, Terms, exit_code, on, rulings
from tasks.subjects import Subject
from tests.data.samples import CPU, RELU, timing

TERMS = Terms(device="cpu", contract=Contract(), timed=True, deadline_s=30.0)
ADMITTED = Admission(outcome=None, reason="")
KEYS = [
    *("candidate", "operator", "device", "verdict", "reason", "needs_review"),
    *("speedup", "speedup_low", "speedup_high", "baseline"),
    *("contract", "execution", "isolation", "seconds"),
]


class Bench:
    """A machine that reads the verdict from the source."""

    def __init__(self, admission: Admission = ADMITTED) -> None:
        self.admission = admission
        self.admitted: list[str] = []
        self.jobs: list[MeasureJob] = []
        self.held = False

    async def admit(
        self, operator: Operator, contract: Contract, device: Device, *, timed: bool = False
    ) -> Admission:
        assert not timed
        self.admitted.append(operator.name)
        return self.admission

    def expect(self, asks: Sequence[Ask]) -> None: ...

    async def build(self, operator: Operator, source: str, device: Device) -> BuildResult:
        return BuildResult(ok="#error" not in source, route="launcher", detail="k.cpp:1: #error")

    async def measure(self, job: MeasureJob) -> RunResult:
        assert self.held, "timed without the device's lease"
        self.jobs.append(job)
        if "wrong" in job.source:
            return RunResult(status=RunStatus.WRONG, detail="wrong at [0]", isolation="unshare")
        timings = (timing(ratio=1.5),) if job.pairs else ()
        return RunResult(status=RunStatus.RAN, timings=timings, isolation="unshare")

    @asynccontextmanager
    async def turn(self, device: Device) -> AsyncIterator[None]:
        self.held = True
        yield
        self.held = False


class Broken(Bench):
    async def measure(self, job: MeasureJob) -> RunResult:
        if "wrong" in job.source:
            raise RuntimeError("a fault of ours")
        return await super().measure(job)


def given(*sources: str) -> tuple[Subject, ...]:
    return tuple(Subject(candidate=f"{s}.py", source=s, operator=RELU) for s in sources)


async def ruled(machine: Bench, *sources: str, terms: Terms = TERMS) -> list[Ruling]:
    return [r async for r in rulings(on(machine, CPU), given(*sources), terms)]


async def test_each_candidate_gets_its_ruling_in_order() -> None:
    """A rejected one does not stop the next; the operator is admitted once."""
    machine = Bench()
    found = await ruled(machine, "wrong", "#error", "fast", " ")
    assert [r.verdict for r in found] == ["WRONG", "BUILD_FAILED", "FASTER", "NO_CODE"]
    assert [r.candidate for r in found] == ["wrong.py", "#error.py", "fast.py", " .py"]
    assert machine.admitted == ["relu"]


class Timeline(Bench):
    """Notes what is built, and what of it while something is measured."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[str] = []
        self.beside: list[str] = []

    async def build(self, operator: Operator, source: str, device: Device) -> BuildResult:
        self.built.append(source)
        if self.held:
            self.beside.append(source)
        return await super().build(operator, source, device)

    async def measure(self, job: MeasureJob) -> RunResult:
        await asyncio.sleep(0)
        return await super().measure(job)


async def test_the_next_one_is_built_while_the_device_measures() -> None:
    """Once each; but not where the compiler would run on the processor that is timed."""
    machine = Timeline()
    found = await ruled(machine, "a", "#error", "b", "c", terms=replace(TERMS, timed=False))
    assert [r.verdict for r in found] == ["CORRECT", "BUILD_FAILED", "CORRECT", "CORRECT"]
    assert machine.built == ["a", "#error", "b", "c"]
    assert machine.beside == ["#error", "c"]
    timed = Timeline()
    await ruled(timed, "a", "b")
    assert not timed.beside


async def test_a_file_without_source_costs_no_machine() -> None:
    """Its fault is the verdict, before anything is admitted, built or measured."""
    subject = replace(given("x")[0], source="", fault="the file is binary: byte 3 is NUL")
    machine = Bench()
    (ruling,) = [r async for r in rulings(on(machine, CPU), (subject,), TERMS)]
    assert (ruling.verdict, ruling.reason) == ("BUILD_FAILED", subject.fault)
    assert not machine.admitted


async def test_the_fields_are_the_contract() -> None:
    """Other programs read these names, in every line, and nothing else."""
    for ruling in await ruled(Bench(), "fast", "#error"):
        assert list(asdict(ruling)) == KEYS
        json.dumps(asdict(ruling), allow_nan=False)


async def test_an_operator_that_is_not_admitted_is_the_verdict() -> None:
    """The outcome stands in place of a verdict; nothing is built or measured."""
    refused = Admission(outcome=Outcome.NOT_ADMITTED, reason="zeros pass")
    machine = Bench(refused)
    (ruling,) = await ruled(machine, "fast")
    assert (ruling.verdict, ruling.reason) == ("NOT_ADMITTED", "zeros pass")
    assert ruling.isolation is None
    assert machine.jobs == []


async def test_no_time_means_no_pairs_and_no_speed() -> None:
    """Without timing a right candidate is CORRECT and has no speed-up."""
    machine = Bench()
    (ruling,) = await ruled(machine, "fast", terms=replace(TERMS, timed=False))
    assert machine.jobs[0].pairs == 0
    assert (ruling.verdict, ruling.speedup, ruling.baseline) == ("CORRECT", None, None)


async def test_the_terms_reach_the_judge() -> None:
    """Deadline and thoroughness are those of a confirming run."""
    machine = Bench()
    await ruled(machine, "fast")
    assert machine.jobs[0].deadline_s == 30.0
    assert machine.jobs[0].thorough


async def test_a_fault_of_ours_is_not_a_verdict() -> None:
    """What was ruled before stays said; the fault comes out as itself."""
    stream = rulings(on(Broken(), CPU), given("fast", "wrong"), TERMS)
    assert (await anext(stream)).verdict == "FASTER"
    with pytest.raises(RuntimeError, match="fault of ours"):
        await anext(stream)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["FASTER", "CORRECT"], 0),
        (["FASTER", "CHEATED"], 3),
        (["NOT_ADMITTED"], 3),
        (["UNVERIFIED", "FASTER"], 4),
        (["UNVERIFIED", "TIMED_OUT"], 3),
    ],
)
def test_exit_codes(verdicts: list[str], code: int) -> None:
    """Accepted, rejected, undecided."""
    assert exit_code(verdicts) == code
