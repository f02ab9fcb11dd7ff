"""Whether a candidate is right: every draw through one child, cheap and decisive ones first."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from data.records import Draw, RunStatus
from targets.remote.bench import Bench
from targets.remote.distributions import domains
from targets.remote.draws import DrawInput, affordable, plan
from targets.remote.numerics import Expected, compare, expected, hollow, structure
from targets.remote.operator import LoadedOperator
from targets.remote.output import Output, SideFault
from targets.remote.side import Side

REPEATS = 20
"""Calls on equal input: six missed a rare race (JUDGE.md, section 3)."""
KEPT = 0.5
"""Share of the deadline that further draws leave to tracing and timing."""
AFTERWARDS_S = 0.2
FEW_REPEATS = 3
"""On shapes whose calls are too large for many."""


class Check:
    """One pass over all draws; what was found stays readable when a fault ends it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.draws: list[Draw] = []
        self.notes: list[str] = []
        self.log = ""
        self._shape = ""
        self._state: dict[str, torch.Tensor] | None = None
        self._in_place = False

    def run(self, side: Side) -> None:
        """Raises SideFault with the first thing that is wrong."""
        bench = self.bench
        job = bench.job
        for draw in plan(bench.loaded, job.contract, seed=bench.seed, thorough=job.thorough):
            if self._spared(draw):
                continue
            exp = expected(bench.loaded, draw, job.contract)
            if exp is not None:
                self._one(side, draw, exp)
        if not self.draws:
            raise SideFault(
                RunStatus.WRONG, "the reference is finite for no draw: nothing to compare"
            )

    def _spared(self, draw: DrawInput) -> bool:
        """Whether a further draw of a shape is left out, because half the time is gone."""
        late = time.monotonic() > self.bench.deadline - KEPT * self.bench.job.deadline_s
        spared = late and any(d.shape == draw.shape for d in self.draws)
        note = f"shape {draw.shape}: fewer draws than planned, half the time was gone"
        if spared and note not in self.notes:
            self.notes.append(note)
        return spared

    def _one(self, side: Side, draw: DrawInput, exp: Expected) -> None:
        fresh = draw.shape != self._shape
        self._prepare(side, draw)
        if side.kind.maps_answers and (fresh or side.slots is None):
            side.outputs_to(hollow(exp), 1)
        outputs = self._answer(side, exp, poisoned=not fresh)
        if fresh:
            self._repeat(side, exp, outputs, REPEATS if self._heavy(exp) else FEW_REPEATS)
        if fresh and (self._heavy(exp) or self.bench.job.thorough):
            self._edit(side, draw)

    def _heavy(self, exp: Expected) -> bool:
        """Whether this is the shape for the many calls."""
        return exp.shape == self.draws[0].shape and affordable(self.bench.loaded, exp.shape)

    def _prepare(self, side: Side, draw: DrawInput) -> None:
        """New parameters in the way that was not used last; inputs at the old address."""
        if draw.shape != self._shape:
            side.construct(self.bench.loaded.init_args(draw.shape), draw.state)
            self._shape = draw.shape
        elif draw.state is not self._state:
            self._in_place = not self._in_place
            side.state(draw.state, in_place=self._in_place)
        self._state = draw.state
        side.inputs([draw.inputs])

    def _answer(self, side: Side, exp: Expected, *, poisoned: bool) -> list[object]:
        """The outputs of one call, compared with the oracle."""
        if poisoned:
            side.poison(_output_bytes(exp))
        before = snapshot(side)
        places = side.call(first=not poisoned)
        outputs = read(side, places, exp)
        self._compare(side, exp, places, outputs)
        if not torch.equal(before, snapshot(side)):
            raise SideFault(RunStatus.INPUT_CHANGED, "the call changed its input tensors")
        side.leave()
        if not same(outputs, [side.read(p) for p in places]):
            raise SideFault(RunStatus.DEFERRED, "the output changed after the call was done")
        return outputs

    def _compare(
        self, side: Side, exp: Expected, places: Sequence[Output], outputs: Sequence[object]
    ) -> None:
        contract = self.bench.job.contract
        found = compare(exp, outputs, contract)
        self.draws.append(found)
        if found.ok:
            return
        where = f"shape {found.shape}, {found.distribution} inputs"
        if side.kind.maps_answers:
            side.leave()
            if compare(exp, [side.read(p) for p in places], contract, places=False).ok:
                late = "right only when the whole device had been waited for: another stream?"
                raise SideFault(RunStatus.DEFERRED, f"{where}: {late}")
        raise SideFault(RunStatus.WRONG, f"{where}: {found.located}")

    def _repeat(self, side: Side, exp: Expected, first: Sequence[object], times: int) -> None:
        """Races: equal input again and again."""
        varied = False
        for number in range(times):
            outputs = read(side, side.call(), exp)
            if same(outputs, first):
                continue
            varied = True
            found = compare(exp, outputs, self.bench.job.contract)
            if not found.ok:
                self.draws.append(found)
                detail = f"call {number + 2} on equal input is wrong: {found.located}"
                raise SideFault(RunStatus.WRONG, detail)
        if varied:
            self.notes.append(f"shape {exp.shape}: answers to equal inputs differ in the last bits")

    def _edit(self, side: Side, draw: DrawInput) -> None:
        """One interior element of each input anew, at the same address: caches show."""
        kinds = kinds_of(self.bench.loaded, draw.shape, draw.inputs)
        inputs = [edit(v, kind) for v, kind in zip(draw.inputs, kinds, strict=True)]
        edited = replace(draw, inputs=inputs)
        exp = expected(self.bench.loaded, edited, self.bench.job.contract)
        if exp is None:
            return
        side.inputs([edited.inputs])
        name = f"{exp.distribution}, one element edited"
        self._answer(side, replace(exp, distribution=name), poisoned=True)


def kinds_of(loaded: LoadedOperator, shape: str, inputs: list[Any]) -> list[str]:
    """The kind of domain of each input (`distributions.Domain`)."""
    named = loaded.shapes.get(shape.split(",", maxsplit=1)[0], {})
    return [d.kind for d in domains(loaded.domains, named, inputs)]


def edit(value: Any, kind: str) -> Any:
    """A copy with one interior element changed within its domain."""
    if not isinstance(value, torch.Tensor) or kind == "fixed" or value.numel() < 2:
        return value
    new = value.clone(memory_format=torch.preserve_format)
    index = _somewhere(new)
    if _floats(value) and kind == "real":
        scale = float(value.float().abs().max()) or 1.0
        new[index] = -value[index] + 0.5 * scale
    else:
        new[index] = value[_somewhere(new)]
    return new


def _floats(value: object) -> bool:
    return isinstance(value, torch.Tensor) and bool(value.is_floating_point())


def _somewhere(t: torch.Tensor) -> tuple[int, ...]:
    """An index off the borders where there is room."""
    low = [1 if s > 2 else 0 for s in t.shape]
    high = [s - 1 if s > 2 else s for s in t.shape]
    pairs = zip(low, high, strict=True)
    return tuple(int(torch.randint(a, b, (1,))) for a, b in pairs)


def snapshot(side: Side) -> torch.Tensor:
    """A copy of all bytes of the shared inputs."""
    assert side.arena is not None
    return side.arena.memory.flat.clone()


def read(side: Side, places: Sequence[Output], exp: Expected) -> list[object]:
    """All outputs in full; raises BAD_STRUCTURE before anything of the wrong size is read."""
    hollow = [
        p.value
        if p.plain
        else torch.empty_strided(p.shape, p.strides, dtype=p.dtype, device="meta")
        for p in places
    ]
    fault = structure(exp, hollow)
    if fault is not None:
        side.expect_silence(AFTERWARDS_S)  # a second answer: the first was not the driver's
        raise SideFault(RunStatus.BAD_STRUCTURE, fault)
    wanted = sum(_output_bytes(exp))
    if sum(p.nbytes for p in places) > 16 * wanted + (1 << 20):
        raise SideFault(RunStatus.BAD_STRUCTURE, "outputs are spread over too much memory")
    return [side.read(p) for p in places]


def same(a: Sequence[object], b: Sequence[object]) -> bool:
    """Bitwise, NaN included."""
    return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))


def _same(a: object, b: object) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return a is b or a == b
    return bool(a.shape == b.shape and torch.equal(_bits(a), _bits(b)))


def _bits(t: torch.Tensor) -> torch.Tensor:
    return t.contiguous().view(-1).view(torch.uint8)


def _output_bytes(exp: Expected) -> list[int]:
    sizes_ = []
    for goal in exp.goals:
        count = 1
        for n in goal.shape:
            count *= n
        itemsize = getattr(getattr(torch, goal.dtype, None), "itemsize", 8)
        sizes_.append(count * itemsize)
    return sizes_
