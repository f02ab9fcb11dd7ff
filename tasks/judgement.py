"""Judging given kernels: the same machine, evidence and verdict as in the loop."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from agents.loop import CONFIRM_PAIRS
from data.errors import MachineError
from data.records import (
    Admission,
    BuildResult,
    Contract,
    Device,
    MeasureJob,
    RunResult,
)
from data.verdict import Judgement, Verdict
from data.verdict import judge as judge_evidence
from targets import ON_PROCESSOR
from tasks import devices
from tasks.lease import leased
from tasks.retry import patiently
from tasks.stages import Machine
from tasks.subjects import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How the subjects are judged."""

    device: str
    contract: Contract
    timed: bool
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What `kforge judge` says of one candidate; names and order of the fields are a contract."""

    candidate: str
    operator: str
    device: str
    verdict: str
    """A `Verdict` or an `Outcome`."""
    reason: str
    needs_review: bool = False
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    baseline: str | None = None
    contract: str
    execution: str
    isolation: str | None = None
    """None when nothing was executed."""
    seconds: float = 0.0


ACCEPTED = (Verdict.CORRECT, Verdict.FASTER)


def exit_code(verdicts: list[str]) -> int:
    """0 when all are accepted, 3 when one is rejected or not admitted, else 4: undecided.

    >>> exit_code(["FASTER", "CORRECT"]), exit_code(["UNVERIFIED", "FASTER"])
    (0, 4)
    >>> exit_code(["UNVERIFIED", "WRONG"])
    3
    """
    if all(v in ACCEPTED for v in verdicts):
        return 0
    return 3 if any(v not in (*ACCEPTED, Verdict.UNVERIFIED) for v in verdicts) else 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A device on one of the machines that have it, and what was admitted there."""

    machine: Machine
    device: Device
    admissions: dict[str, Admission] = field(default_factory=dict)
    """By the operator's hash: each is admitted once."""
    built: dict[tuple[str, str], BuildResult] = field(default_factory=dict)
    """Ahead of their turn, by the operator's hash and the source."""


Rule = Callable[[Bench], Awaitable[Ruling]]
Placed = Callable[[Rule], Awaitable[Ruling]]
"""What a rule says on a bench that works."""


async def rulings(
    placed: Placed, given: tuple[Subject, ...], terms: Terms
) -> AsyncIterator[Ruling]:
    """One ruling after the other, in order. MachineError ends it."""
    (device,) = devices.find((terms.device,))
    shared = (
        terms.timed and device.target in ON_PROCESSOR
    )  # a compiler would run beside what is timed
    for place, subject in enumerate(given):
        began = time.monotonic()
        ruling = _unread(subject, device, terms)
        if ruling is None:
            following = () if shared else given[place + 1 : place + 2]
            rule = partial(_ruled, subject=subject, following=following, terms=terms)
            ruling = await placed(rule)
        yield replace(ruling, seconds=round(time.monotonic() - began, 3))


def on(machine: Machine, device: Device) -> Placed:
    """All on one machine."""
    bench = Bench(machine=machine, device=device)

    async def placed(rule: Rule) -> Ruling:
        return await rule(bench)

    return placed


def _unread(subject: Subject, device: Device, terms: Terms) -> Ruling | None:
    """The ruling on a file that holds no source: the machine is not asked."""
    if subject.fault:
        judgement = Judgement(verdict=Verdict.BUILD_FAILED, reason=subject.fault)
    elif not subject.source.strip():
        judgement = Judgement(verdict=Verdict.NO_CODE, reason="the file is empty")
    else:
        return None
    return _ruling(subject, device, terms, judgement, None)


async def _ruled(
    bench: Bench, *, subject: Subject, following: tuple[Subject, ...], terms: Terms
) -> Ruling:
    """`following`: what may be built meanwhile."""
    key, device = subject.operator.hash, bench.device
    if key not in bench.admissions:
        admit = partial(bench.machine.admit, subject.operator, terms.contract, device)
        bench.admissions[key] = await patiently(admit)
    admission = bench.admissions[key]
    if not admission.admitted:
        return _refused(subject, device, terms, admission)
    build = await _built(bench, subject)
    run = None
    if build.runs and device.execution != "none":
        job = replace(_job(subject, device, terms), scales=admission.scales)
        ahead = asyncio.create_task(_build_ahead(bench, following))
        try:
            run = await leased(bench.machine, device, partial(bench.machine.measure, job))
            await ahead
        finally:
            ahead.cancel()
    return _ruling(subject, device, terms, judge_evidence(terms.contract, build, run), run)


async def _built(bench: Bench, subject: Subject) -> BuildResult:
    """Its build, made ahead or now."""
    ahead = bench.built.pop((subject.operator.hash, subject.source), None)
    if ahead is not None:
        return ahead
    return await patiently(
        partial(bench.machine.build, subject.operator, subject.source, bench.device)
    )


async def _build_ahead(bench: Bench, following: tuple[Subject, ...]) -> None:
    """What the machine fails to build now is tried again in its own turn."""
    for subject in following:
        if not subject.fault and subject.source.strip():
            with suppress(MachineError):
                bench.built[subject.operator.hash, subject.source] = await bench.machine.build(
                    subject.operator, subject.source, bench.device
                )


def _job(subject: Subject, device: Device, terms: Terms) -> MeasureJob:
    return MeasureJob(
        operator=subject.operator,
        device=device,
        contract=terms.contract,
        source=subject.source,
        pairs=CONFIRM_PAIRS if terms.timed and device.timed else 0,
        thorough=True,
        deadline_s=terms.deadline_s,
    )


def _refused(subject: Subject, device: Device, terms: Terms, admission: Admission) -> Ruling:
    """The ruling when the operator itself is not admitted."""
    assert admission.outcome is not None
    return Ruling(
        candidate=subject.candidate,
        operator=subject.operator.name,
        device=device.name,
        verdict=admission.outcome.value,
        reason=admission.reason,
        contract=str(terms.contract),
        execution=device.execution,
    )


def _ruling(
    subject: Subject, device: Device, terms: Terms, judgement: Judgement, run: RunResult | None
) -> Ruling:
    return Ruling(
        candidate=subject.candidate,
        operator=subject.operator.name,
        device=device.name,
        verdict=judgement.verdict.value,
        reason=judgement.reason,
        needs_review=judgement.needs_review,
        speedup=judgement.speedup,
        speedup_low=judgement.low,
        speedup_high=judgement.high,
        baseline=judgement.baseline,
        contract=str(terms.contract),
        execution=device.execution,
        isolation=run.isolation if run else None,
    )
