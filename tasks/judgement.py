"""Judging given kernels: the same machine, evidence and verdict as in the loop."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from agents.loop import CONFIRM_PAIRS
from data.errors import MisuseError
from data.operator import find
from data.records import (
    Admission,
    BuildResult,
    Contract,
    Device,
    MeasureJob,
    Operator,
    RunResult,
)
from data.verdict import Judgement, Verdict
from data.verdict import judge as judge_evidence
from targets import TARGETS
from tasks import devices
from tasks.retry import patiently


class Machine(Protocol):
    """What a judgement needs of the machine that holds the device."""

    async def admit(self, operator: Operator, contract: Contract, device: Device) -> Admission: ...

    async def build(self, operator: Operator, source: str, language: str) -> BuildResult: ...

    async def measure(self, job: MeasureJob) -> RunResult: ...

    def lease(self, device: Device) -> AbstractAsyncContextManager[object]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A file and what it is judged against."""

    candidate: str
    """The path as it was given."""
    source: str
    operator: Operator


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


def subjects(
    candidates: tuple[str, ...], operator: str | None, pairs: Path | None
) -> tuple[Subject, ...]:
    """The files with their operators, all read before anything is judged; MisuseError if amiss."""
    if pairs is not None:
        if candidates or operator:
            raise MisuseError("--pairs stands alone: give no CANDIDATE and no --operator with it")
        named = _pairs(pairs)
    elif not candidates:
        raise MisuseError("no candidate is given; name CANDIDATE.py files or --pairs FILE.jsonl")
    elif operator is None:
        raise MisuseError("--operator FILE_OR_NAME says what the candidates are judged against")
    else:
        named = [(c, operator) for c in candidates]
    operators = {name: _operator(name) for name in dict.fromkeys(o for _, o in named)}
    return tuple(
        Subject(candidate=c, source=_source(Path(c)), operator=operators[o]) for c, o in named
    )


def _operator(name: str) -> Operator:
    (found,) = find((name,), None)
    return found


def _pairs(path: Path) -> list[tuple[str, str]]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"--pairs {path} cannot be read: {error}") from None
    named = [_pair(path, n, line) for n, line in enumerate(lines, 1) if line.strip()]
    if not named:
        raise MisuseError(f"--pairs {path} is empty; expected {{candidate, operator}} a line")
    return named


def _pair(path: Path, number: int, line: str) -> tuple[str, str]:
    try:
        value = json.loads(line)
        candidate, operator = value["candidate"], value["operator"]
    except (ValueError, KeyError, TypeError):
        candidate = operator = None
    if not isinstance(candidate, str) or not isinstance(operator, str):
        raise MisuseError(
            f'{path}:{number} is no pair; expected {{"candidate": "FILE", "operator": "NAME"}}'
        )
    return candidate, operator


def _source(path: Path) -> str:
    """The candidate's text; bytes that are no text become characters that do not compile."""
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError as error:
        raise MisuseError(f"candidate {path} cannot be read: {error.strerror}") from None


async def rulings(
    machine: Machine, given: tuple[Subject, ...], terms: Terms
) -> AsyncIterator[Ruling]:
    """One ruling after the other, in order; an operator is admitted once. MachineError ends it."""
    (device,) = devices.find((terms.device,))
    admissions: dict[str, Admission] = {}
    for subject in given:
        began = time.monotonic()
        key = subject.operator.hash
        if key not in admissions:
            admit = partial(machine.admit, subject.operator, terms.contract, device)
            admissions[key] = await patiently(admit)
        if admissions[key].admitted:
            judgement, run = await _judged(machine, subject, device, terms)
            ruling = _ruling(subject, device, terms, judgement, run)
        else:
            ruling = _refused(subject, device, terms, admissions[key])
        yield replace(ruling, seconds=round(time.monotonic() - began, 3))


async def _judged(
    machine: Machine, subject: Subject, device: Device, terms: Terms
) -> tuple[Judgement, RunResult | None]:
    if not subject.source.strip():
        return Judgement(verdict=Verdict.NO_CODE, reason="the file is empty"), None
    language = TARGETS[device.target].languages[0]
    compile_it = partial(machine.build, subject.operator, subject.source, language)
    measure = partial(machine.measure, _job(subject, device, terms))
    async with machine.lease(device):
        build = await patiently(compile_it)
        run = await patiently(measure) if build.ok else None
    return judge_evidence(terms.contract, build, run), run


def _job(subject: Subject, device: Device, terms: Terms) -> MeasureJob:
    return MeasureJob(
        operator=subject.operator,
        device=device,
        contract=terms.contract,
        source=subject.source,
        pairs=CONFIRM_PAIRS if terms.timed else 0,
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
