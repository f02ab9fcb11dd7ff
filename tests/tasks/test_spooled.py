"""The controller's side of a spool: rows in the ledger once, and an end when nobody works."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agents import loop
from data.codec import encode
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
from data.store import Ledger
from data.verdict import Verdict
from targets.machines import archive
from targets.machines.local import LocalMachine
from targets.machines.spool import SpoolMachine, Waiting
from targets.remote.jobs import Job, Row
from targets.remote.spool import Spool
from tasks.judgement import Terms, on, rulings
from tasks.offline import Offline
from tasks.rehearsal import rehearse
from tasks.remote.work import Worker
from tasks.spooled import imported, ported
from tasks.stages import stages_for
from tasks.subjects import Subject
from tests.agents.fakes import OPERATOR, Scripted, pair

PAIR = pair(steps=3)
DEVICE = replace(PAIR.device, machine="bench")


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.02)


async def history() -> tuple[Iteration, ...]:
    return await loop.port(PAIR, Scripted(["1.5x", "wrong", "2.0x"]).stages())


def put(spool: Spool, job: Job, steps: tuple[Iteration, ...]) -> None:
    for step in steps:
        row = Row(job=job.id, number=step.move.step, archive=job.archive, iteration=step)
        spool.put_row(row)


def machine(folder: Path, *, clock: list[float] | None = None) -> SpoolMachine:
    now = clock or [0.0]
    return SpoolMachine(DEVICE, folder, clock=lambda: now[0])


async def test_rows_come_back_one_by_one_and_are_on_record_once(tmp_path: Path) -> None:
    """Each is told and put on record when it is there; looked at again, nothing is new."""
    spooled, ledger = machine(tmp_path / "spool"), Ledger(tmp_path / "runs")
    steps = await history()
    told: list[Iteration] = []
    porting = asyncio.ensure_future(ported(spooled, PAIR, ledger, told.append))
    job = spooled.pair(PAIR)
    put(spooled.spool, job, steps[:2])
    await until(lambda: len(told) == 2)
    assert not porting.done()
    put(spooled.spool, job, steps)
    spooled.spool.end(job)
    assert await porting == steps
    assert tuple(told) == steps
    assert imported(spooled.spool, job, ledger) == ()
    assert ledger.history(PAIR.run_id, OPERATOR.hash, "cpu") == steps


async def test_a_verdict_without_its_evidence_is_not_imported(tmp_path: Path) -> None:
    """A row that claims more than its measurements bear, or another contract, is refused."""
    spooled, ledger = machine(tmp_path / "spool"), Ledger(tmp_path / "runs")
    first, second, *_ = await history()
    job = spooled.pair(PAIR)
    put(spooled.spool, job, (first,))
    put(spooled.spool, job, (replace(second, verdict=Verdict.FASTER),))
    other = replace(second, run_id="another")
    put(spooled.spool, job, (other,))
    assert imported(spooled.spool, job, ledger) == (first,)
    assert len(list((tmp_path / "spool" / "refused").iterdir())) == 2


async def test_nobody_at_work_ends_the_wait_and_somebody_does_not(tmp_path: Path) -> None:
    """A held claim of a living process is a sign of life; after it only silence counts."""
    clock = [0.0]
    spooled = machine(tmp_path, clock=clock)
    job = spooled.pair(PAIR)
    claim = spooled.spool.claims.take(job.id)
    assert claim is not None
    clock[0] = 1000.0
    spooled.check()
    claim.park()
    clock[0] = 1020.0
    spooled.check()
    clock[0] = 1031.0
    with pytest.raises(Waiting, match=r"python3 kforge-remote.pyz work \."):
        spooled.check()


class Remote:
    """The machine beside the device."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        del args, deadline_s
        self.asked.append(op)
        return {"outcome": "TOO_LARGE", "reason": "no room"}

    @asynccontextmanager
    async def turn(self, device: Device) -> AsyncIterator[None]:
        del device
        yield

    def close(self) -> None: ...


async def test_a_question_to_the_judge_is_answered_through_the_folder(tmp_path: Path) -> None:
    """What a model's loop asks step by step: a job of its own, answered once."""
    spooled, remote = machine(tmp_path), Remote()
    asking = asyncio.ensure_future(spooled.admit(OPERATOR, Contract(), DEVICE))
    await until(lambda: bool(spooled.spool.ids()))
    worker = Worker(
        spool=Spool(tmp_path),
        archive=archive.identity(),
        machine=cast("LocalMachine", remote),
        say=lambda _: None,
    )
    await worker._all()
    assert (await asking).reason == "no room"
    assert Counter(remote.asked) == {"admit": 1}
    assert (await spooled.admit(OPERATOR, Contract(), DEVICE)).reason == "no room"


async def test_a_spool_runs_no_commands(tmp_path: Path) -> None:
    """The other questions of the contract are refused with a line, none is waited for."""
    for asked in (
        machine(tmp_path).run(("ls",), 1.0),
        machine(tmp_path).put(tmp_path, tmp_path),
        machine(tmp_path).get(tmp_path, tmp_path),
    ):
        with pytest.raises(MachineError, match="'bench' is a spool"):
            await asked


async def test_a_step_and_an_admission_travel_once(tmp_path: Path) -> None:
    """Of a model's loop: probe and time of an operator are one job, build and measurement too."""
    spooled, remote = machine(tmp_path), Strict()
    stages = stages_for(Offline(0), spooled, kept)
    worker = Worker(
        spool=Spool(tmp_path),
        archive=archive.identity(),
        machine=cast("LocalMachine", remote),
        say=lambda _: None,
    )
    admitting = asyncio.ensure_future(stages.admit(PAIR))
    await until(lambda: bool(spooled.spool.ids()))
    await worker._all()
    assert (await admitting).admitted
    job = MeasureJob(
        operator=OPERATOR, device=DEVICE, contract=Contract(), source="kernel", pairs=1
    )
    building = asyncio.ensure_future(stages.build(job))
    await until(lambda: len(spooled.spool.ids()) == 2)
    await worker._all()
    assert (await building).ok
    assert (await stages.measure(job)).status is RunStatus.WRONG
    assert remote.asked == ["admit", "admit", "build", "measure"]
    assert len(spooled.spool.ids()) == 2


async def kept(_: Iteration) -> None:
    """Nothing is put on record here."""


def subject(name: str, source: str, operator: Operator) -> Subject:
    return Subject(candidate=name, source=source, operator=operator)


class Strict(Remote):
    """Builds what is not broken and measures what was built."""

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        del deadline_s
        self.asked.append(op)
        if op == "admit":
            return encode(Admission(outcome=None, reason=""))
        if op == "build":
            ok = "broken" not in args["candidate_source"]
            return encode(BuildResult(ok=ok, route="launcher", detail="" if ok else "no"))
        return encode(RunResult(status=RunStatus.WRONG, detail="17 differ"))


async def test_given_candidates_travel_together(tmp_path: Path) -> None:
    """Five files against two operators: two jobs, each operator admitted once, none built twice."""
    spooled, remote = machine(tmp_path), Strict()
    other = Operator(name="relu", source="class Model: pass")
    given = (
        subject("a.py", "one", OPERATOR),
        subject("b.py", "broken", other),
        subject("c.py", "broken too", OPERATOR),
        subject("d.py", "", OPERATOR),
        subject("e.py", "two", other),
    )
    terms = Terms(device="cpu", contract=Contract(), timed=False, deadline_s=9.0)
    await rehearse(spooled, given, terms)
    assert [name.rpartition("-")[0] for name in spooled.spool.ids()] == [
        "judge-relu-cpu",
        "judge-softmax-cpu",
    ]
    worker = Worker(
        spool=Spool(tmp_path),
        archive=archive.identity(),
        machine=cast("LocalMachine", remote),
        say=lambda _: None,
    )
    await worker._all()
    said = [r.verdict async for r in rulings(on(spooled, spooled.device), given, terms)]
    assert said == ["WRONG", "BUILD_FAILED", "BUILD_FAILED", "NO_CODE", "WRONG"]
    assert Counter(remote.asked) == {"admit": 2, "build": 4, "measure": 2}
    assert len(spooled.spool.ids()) == 2
