"""What a candidate is compared with: the faster of eager and torch.compile, timed in turns.

The choice is remembered by content; so is what the compiler made (TORCHINDUCTOR_CACHE_DIR).
"""

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from data.records import MeasureJob, digest
from targets.remote.accelerator import kind_of_device
from targets.remote.allowance import Allowance
from targets.remote.bench import COMPILED, EAGER, Bench
from targets.remote.draws import parameters, refill
from targets.remote.heat import queued_us
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.output import SideFault
from targets.remote.side import Side
from targets.remote.zygote import Zygote

ROUNDS = 7
MANY, SETS = 100, 4
"""Calls a message on a device, over sets that its cache does not hold together."""
NEAR = 0.98
"""Compiled counts as faster below this share of eager's time: noise must not choose."""
LONG_ENOUGH_S = 0.4
"""A form that took so long in all its rounds needs no further ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The faster form, and what both took."""

    name: str
    times_us: dict[str, float]
    """Least times by form; messages included, but for calls that a device was given ahead."""
    note: str = ""
    """Why torch.compile was not there; empty when it was."""

    @property
    def seconds(self) -> float:
        return self.times_us[self.name] * 1e-6


def choose(bench: Bench, shape: str) -> Choice:
    """The baseline of this operator, contract and shape on this machine.

    Raises SideFault when not even eager runs.
    """
    choice = known(bench, shape)
    if choice is None:
        choice = _compete(bench, shape)
        _remember(_path(bench, shape), choice)
    return choice


def known(bench: Bench, shape: str) -> Choice | None:
    """The choice, if it was made here before."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads(_path(bench, shape).read_text())
        return Choice(name=told["name"], times_us=dict(told["times_us"]), note=told["note"])
    return None


def _path(bench: Bench, shape: str) -> Path:
    return bench.cache / "baselines" / f"{_key(bench, shape)}.json"


def stock_us(job: MeasureJob, zygote: Zygote, cache: Path, shape: str) -> float:
    """Microseconds of the operator's faster form; OperatorFault when none runs in our limits."""
    loaded, kind = LoadedOperator(job.operator), kind_of_device(job.device)
    kind.begin(reduced=False)
    loaded.place = kind.place
    bench = Bench(
        job=job,
        loaded=loaded,
        kind=kind,
        zygote=zygote,
        cache=cache,
        deadline=time.monotonic() + job.deadline_s,
        seed=0,
        candidates=Allowance(job.deadline_s),
        baselines=Allowance(job.deadline_s),
    )
    try:
        choice = choose(bench, shape)
    except SideFault as fault:
        raise OperatorFault(f"as a baseline it does not run: {fault}") from fault
    return choice.times_us[choice.name]


def _compete(bench: Bench, shape: str) -> Choice:
    state, inputs = parameters(bench.loaded, shape, bench.seed), refill(bench.loaded, shape, 0)
    with contextlib.ExitStack() as stack:
        eager = stack.enter_context(bench.baseline(EAGER))
        eager.construct(bench.loaded.init_args(shape), state)
        sets = [inputs] * (SETS if bench.kind.maps_answers else 1)
        eager.inputs(sets)
        eager.call(first=True)
        eager.freeze()
        try:
            compiled = stack.enter_context(bench.baseline(COMPILED))
            compiled.construct(bench.loaded.init_args(shape), state, compiled=True)
            compiled.inputs(sets)
            compiled.call(first=True)
        except SideFault as fault:
            eager.thaw()
            note = f"torch.compile failed: {str(fault)[:200]}"
            return Choice(name=EAGER, times_us=_times({EAGER: eager}), note=note)
        compiled.freeze()
        sides = {EAGER: eager, COMPILED: compiled}
        times = _times(sides)
        if bench.kind.maps_answers:
            times = queued_us(bench, shape, sides, times) or times
    faster = times[COMPILED] < times[EAGER] * NEAR
    return Choice(name=COMPILED if faster else EAGER, times_us=times)


def _times(sides: Mapping[str, Side]) -> dict[str, float]:
    """Least microseconds of a call, in turns, who waits frozen: a neighbour's load only adds."""
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            side.thaw()
            side.call()
            for _ in range(3):
                samples[name].append(_seconds(side) * 1e6)
            side.freeze()
        if all(sum(s) > LONG_ENOUGH_S * 1e6 for s in samples.values()):
            break
    return {name: min(s) for name, s in samples.items()}


def _seconds(side: Side) -> float:
    """Of a call with its message; on a device of one of many, whose message counts little."""
    began = time.perf_counter()
    if not side.kind.maps_answers:
        side.call()
        return time.perf_counter() - began
    side.loop(MANY)
    return (time.perf_counter() - began) / MANY


def _key(bench: Bench, shape: str) -> str:
    return digest(
        bench.job.operator.hash,
        str(bench.job.contract.policy),
        json.dumps([shape, bench.loaded.shapes[shape]]),
        torch.__version__,
        processor(),
        str(len(os.sched_getaffinity(0))),
        json.dumps(bench.kind.identity()),
        "queued" if bench.kind.maps_answers else "",
    )


def processor() -> str:
    """Model name of the processor; empty where the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""


def _remember(path: Path, choice: Choice) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    told = {"name": choice.name, "times_us": choice.times_us, "note": choice.note}
    fresh.write_text(json.dumps(told))
    fresh.replace(path)
