"""A job to its evidence: right or wrong, whose work, how fast. The verdict is made elsewhere."""

import os
import secrets
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import torch

from data.errors import MachineError
from data.records import SMALL, Card, MeasureJob, Profile, RunResult, RunStatus, Timing
from data.verdict import REVIEW_ABOVE
from targets.remote import hygiene, inherited, neighbours
from targets.remote.accelerator import kind_of_device
from targets.remote.allowance import Allowance
from targets.remote.authorship import Authorship, authorship, ghost_of
from targets.remote.baseline import choose, processor
from targets.remote.bench import Bench
from targets.remote.check import Check
from targets.remote.headstart import HeadStart
from targets.remote.heap import keep_pages
from targets.remote.offspring import Child
from targets.remote.operator import LoadedOperator
from targets.remote.output import SideFault
from targets.remote.products import gathered
from targets.remote.profiled import profiled
from targets.remote.roofline import floor_us
from targets.remote.sizing import sizes
from targets.remote.solo import impossible, solo_us
from targets.remote.threads import Threads, compiling, looked_at
from targets.remote.timing import Race
from targets.remote.zygote import Zygote

SLACK = 1e-3
"""Of the floor (JUDGE.md, section 4, item 12)."""
MIDDLE = 20_000
"""Characters of a child's log that are kept."""


@dataclass(slots=True)
class _Findings:
    """What is known so far."""

    work: Authorship = field(default_factory=Authorship)
    threads: Threads = field(default_factory=Threads)
    timings: tuple[Timing, ...] = ()
    review: list[str] = field(default_factory=list)
    first: Child | None = None
    """Where the draws were checked."""
    device: dict[str, str] = field(default_factory=dict)
    """What the device says of itself, now and before."""
    counted: Profile | None = None


def measure(job: MeasureJob, *, zygote: Zygote, cache: Path, card: Card | None = None) -> RunResult:
    """Evidence of one candidate. Its faults are values; MachineError is the world's.

    Without the device's measured peaks in `card` no floor is known.
    """
    began, before = time.monotonic(), neighbours.seen()
    keep_pages()
    seed = secrets.randbelow(1 << 31) if job.seed is None else job.seed
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    kind = kind_of_device(job.device)
    bench = Bench(
        job=job,
        loaded=LoadedOperator(job.operator),
        zygote=zygote,
        cache=cache,
        kept=inherited.folder(cache),
        own=gathered(cache, job.device, _sources(job)),
        deadline=began + job.deadline_s,
        seed=seed,
        candidates=Allowance(job.deadline_s),
        baselines=Allowance(job.deadline_s),
        card=card,
        kind=kind,
    )
    bench.loaded.place = kind.place
    check, found = Check(bench), _Findings()
    with hygiene.watched(kind, bench.pids), closing(bench):
        bench.expect(candidates=1)
        kind.begin(reduced=False)
        found.device = {f"{k}_before": v for k, v in kind.state().items()}
        status, detail = _status(bench, check, found)
    found.device.update({**kind.identity(), **kind.state()})
    return RunResult(
        status=status,
        detail=detail,
        draws=tuple(check.draws),
        timings=found.timings if status is RunStatus.RAN else (),
        library_ops=found.work.ops,
        authored=found.work.authored,
        review=(*found.work.review, *found.threads.review, *found.review, *check.notes),
        isolation=found.first.isolation if found.first else "",
        execution=job.device.execution,
        environment={
            **_environment(),
            **neighbours.since(before),
            **found.threads.environment,
            **found.device,
        },
        log=_cut(found.first.log() if found.first else ""),
        counted=found.counted,
        seconds=time.monotonic() - began,
    )


def _sources(job: MeasureJob) -> list[str]:
    """The candidate, and what it is compared with beside the baseline."""
    return [job.source] if job.parent_source is None else [job.source, job.parent_source]


def _status(bench: Bench, check: Check, found: _Findings) -> tuple[RunStatus, str]:
    """How far it came, and why not farther."""
    try:
        _judge(bench, check, found)
    except SideFault as error:
        return error.fault.status, error.fault.detail
    return RunStatus.RAN, ""


def _judge(bench: Bench, check: Check, found: _Findings) -> None:
    """Cheap and decisive first: right, then whose work, then how fast. Raises SideFault."""
    if bench.job.pairs > 0 and not bench.job.device.timed:
        raise MachineError(f"{bench.job.device.name} is emulated: it has no time")
    shapes = _timed(bench) if bench.job.pairs > 0 else []
    check.begin()
    with ExitStack() as stack:
        libraries = stack.enter_context(compiling(bench))
        start = stack.enter_context(
            closing(HeadStart(bench, shapes, stack.enter_context(ghost_of(bench))))
        )
        with bench.passing(bench.candidate(bench.job.source)) as side:
            found.first = side.child
            check.run(side, passed=start.begin)
            bench.inherit(side)
        found.threads = looked_at(bench, libraries)
        start.go_on()
        found.work = authorship(bench, start.ghost, check.first)
        found.timings = tuple(t for shape in shapes if (t := _time(bench, shape, found, start)))
    if shapes and not bench.job.thorough:
        found.counted = profiled(bench)


def _timed(bench: Bench) -> list[str]:
    """The official shape; when thorough all but the small one."""
    loaded = bench.loaded
    if not bench.job.thorough:
        return [loaded.official]
    return [s for s in loaded.shapes if s != SMALL] or [loaded.official]


def _time(bench: Bench, shape: str, found: _Findings, start: HeadStart) -> Timing | None:
    try:
        choice = choose(bench, shape)
    except SideFault as fault:  # not the candidate's
        if bench.left_s <= 0:
            found.review.append(f"shape {shape}: the deadline came before the timing")
            return None
        raise MachineError(f"the baseline does not run at shape {shape!r}: {fault}") from fault
    if choice.note:
        found.review.append(choice.note)
    race = start.race_of(shape, choice)
    timing = race.run(_floor_us(bench, shape))
    found.review += race.notes
    if timing is not None and (doubt := _doubt(timing)):
        again = "" if bench.kind.maps_answers else f"; {_again(race, timing)}"
        found.review.append(f"shape {shape}: {doubt}{again}")
    return timing


def _doubt(timing: Timing) -> str:
    """Why a time is hard to believe; empty where it is not."""
    if timing.ratio > REVIEW_ABOVE:
        return f"{timing.ratio:.1f}x over {timing.baseline}"
    return f"{timing.candidate_us:.0f} us is below the floor" if _implausible(timing) else ""


def _again(race: Race, timing: Timing) -> str:
    """What the candidate takes alone. Raises SideFault where its bytes could not be moved so."""
    alone = solo_us(race.course)
    need = None if timing.warm else _bytes_us(race.bench, race.shape)
    if impossible(timing.candidate_us, alone, need):
        times = f"{timing.candidate_us:.0f} us a call, {alone:.0f} alone"
        detail = f"shape {race.shape}: {times}: its bytes cannot be moved in less than {need:.0f}"
        raise SideFault(RunStatus.FORGED, detail)
    return f"alone and verified {alone:.0f} us a call"


def _bytes_us(bench: Bench, shape: str) -> float | None:
    """What moving the bytes takes; None where the operator does not say which must be moved."""
    moved = bench.loaded.moved_bytes(shape)
    if bench.card is None or moved is None:
        return None
    return floor_us(None, moved, bench.card, bench.job.contract, dtype="float32")


def _implausible(timing: Timing) -> bool:
    """Below the roofline floor although the inputs did not fit the cache."""
    floor = timing.floor_us
    return floor is not None and not timing.warm and timing.candidate_us < floor * (1 - SLACK)


def _environment() -> dict[str, str]:
    return {
        "torch": torch.__version__,
        "processor": processor(),
        "threads": str(len(os.sched_getaffinity(0))),
    }


def _cut(text: str) -> str:
    """Cut in the middle, saying how much."""
    lost = len(text) - MIDDLE
    if lost <= 0:
        return text
    half = MIDDLE // 2
    return f"{text[:half]}\n... {lost} characters cut ...\n{text[-half:]}"


def _floor_us(bench: Bench, shape: str) -> float | None:
    """Roofline floor of the shape with the peaks that were measured here."""
    if bench.card is None:
        return None
    loaded, known = bench.loaded, sizes(bench.loaded, shape)
    moved = loaded.moved_bytes(shape) or float(known.bytes)
    floats = [t.dtype for t in (*known.inputs, *known.parameters) if "float" in t.dtype]
    dtype = floats[0] if floats else "float32"
    return floor_us(loaded.flops(shape), moved, bench.card, bench.job.contract, dtype=dtype)
