"""Whether a candidate is right: every draw through one child, cheap and decisive ones first."""

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from typing import Any

import torch

from data.records import Draw, RunStatus
from targets.remote.bench import Bench
from targets.remote.deviation import spare_threads
from targets.remote.draws import DrawInput, affordable, domains_of, plan, small_plan
from targets.remote.fence import FILL
from targets.remote.numerics import Expected, compare, expected, hollow, structure
from targets.remote.operator import LoadedOperator
from targets.remote.output import Output, SideFault
from targets.remote.side import Side
from targets.remote.sizing import flatten

REPEATS = 20
"""Calls on equal input: six missed a rare race (JUDGE.md, section 3)."""
KEPT = 0.5
"""Share of the deadline that further draws leave to tracing and timing."""
AFTERWARDS_S = 0.2
FEW_REPEATS = 3
"""On shapes whose calls are too large for many."""
POISON = (0x00, 0x01, 0x81)
"""What freed memory holds in turn: NaN, and bytes that make huge numbers of either sign."""

Asked = tuple[DrawInput, Expected | None]
"""A draw with what it should give; None where it does not count."""

_LIBC = ctypes.CDLL(None)
_LIBC.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


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
        self._oracle_s = 0.0
        self._draws = self._plan()

    def begin(self) -> None:
        """Makes the first draw and asks the oracle: there need be no candidate for that yet."""
        self.first = self._asked(next(self._draws))

    def run(self, side: Side, *, passed: Callable[[], None]) -> None:
        """Raises SideFault with the first thing that is wrong.

        `passed` is called once, when the first draw was right.
        """
        loaded = self.bench.loaded
        rest = (self._asked(draw) for draw in self._draws if not self._spared(draw))
        once = True
        for draw, exp in chain([self.first], rest):
            if exp is not None:
                with spare_threads() if affordable(loaded, draw.shape) else nullcontext():
                    self._one(side, draw, exp)
                if once:
                    passed()
                once = False
        if not self.draws:
            raise SideFault(
                RunStatus.WRONG, "the reference is finite for no draw: nothing to compare"
            )

    def _asked(self, draw: DrawInput) -> Asked:
        began = time.monotonic()
        exp = expected(self.bench.loaded, draw, self.bench.job.contract)
        self._oracle_s += time.monotonic() - began
        return draw, exp

    def _plan(self) -> Iterator[DrawInput]:
        loaded, job, seed = self.bench.loaded, self.bench.job, self.bench.seed
        if not job.device.timed:
            return small_plan(loaded, job.contract, seed=seed, scales=job.scales)
        return plan(loaded, job.contract, seed=seed, thorough=job.thorough, scales=job.scales)

    def _spared(self, draw: DrawInput) -> bool:
        """Whether a further draw of a shape is left out: half the time is gone, much by the oracle.

        What a candidate, or a slow start of its process, takes spares it no draw.
        """
        limit_s = self.bench.job.deadline_s
        late = time.monotonic() > self.bench.deadline - KEPT * limit_s
        spared = (
            late
            and self._oracle_s > KEPT / 2 * limit_s
            and any(d.shape == draw.shape for d in self.draws)
        )
        note = f"shape {draw.shape}: fewer draws than planned, half the time was gone"
        if spared and note not in self.notes:
            self.notes.append(note)
        return spared

    def _one(self, side: Side, draw: DrawInput, exp: Expected) -> None:
        fresh = draw.shape != self._shape
        self._prepare(side, draw)
        if side.kind.maps_answers and (fresh or side.slots is None):
            side.outputs_to(hollow(exp), 1)
        outputs = self._answer(side, draw, exp, first=fresh)
        if fresh:
            self._repeat(side, exp, outputs, REPEATS if self._heavy(exp) else FEW_REPEATS)
            self._fenced(side, exp)
        if fresh and (self._heavy(exp) or self.bench.job.thorough):
            turned = permuted(draw)
            self._again(side, turned)
            self._again(side, edited(self.bench.loaded, turned))

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

    def _answer(self, side: Side, draw: DrawInput, exp: Expected, *, first: bool) -> list[object]:
        """The outputs of one call, compared with the oracle; all but the first after poison."""
        if not first:
            side.poison(_output_bytes(exp), POISON[len(self.draws) % len(POISON)])
        places = side.call(first=first)
        outputs = read(side, places, exp)
        self._compare(side, exp, places, outputs)
        if not untouched(side, draw.inputs):
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

    def _fenced(self, side: Side, exp: Expected) -> None:
        """One call whose new tensors lie between fences: what is written past an end shows."""
        places, fences = side.fenced_call()
        found = compare(exp, read(side, places, exp), self.bench.job.contract)
        if not found.ok:
            detail = f"wrong where strange memory lies round its tensors: {found.located}"
            raise SideFault(RunStatus.WRONG, detail)
        broken = bytearray(sum(size for _, size in fences))
        if fences:
            side.read_pieces(fences, broken)
        if broken.count(FILL) != len(broken):
            detail = "the call writes past the end of a tensor that it allocated"
            raise SideFault(RunStatus.WRONG, f"shape {exp.shape}: {detail}")

    def _again(self, side: Side, draw: DrawInput) -> None:
        """Other contents at the same addresses: caches show."""
        exp = expected(self.bench.loaded, draw, self.bench.job.contract)
        if exp is not None:
            side.inputs([draw.inputs])
            self._answer(side, draw, exp, first=False)


def edited(loaded: LoadedOperator, draw: DrawInput) -> DrawInput:
    """One interior element of each input anew."""
    known = domains_of(loaded, draw.shape, draw.inputs)
    inputs = [edit(v, d.kind) for v, d in zip(draw.inputs, known, strict=True)]
    return replace(draw, inputs=inputs, distribution=f"{draw.distribution}, one element edited")


def permuted(draw: DrawInput) -> DrawInput:
    """All inputs with their rows turned round by one: contents that have the same sums."""
    inputs = [v.roll(1, 0) if _turns(v) else v for v in draw.inputs]
    return replace(draw, inputs=inputs, distribution=f"{draw.distribution}, rows permuted")


def _turns(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim > 0 and value.is_contiguous()


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


def untouched(side: Side, inputs: Sequence[Any]) -> bool:
    """Whether the shared inputs, and the fences between them, are as they were given."""
    assert side.arena is not None
    given = [t for t in flatten(list(inputs)) if isinstance(t, torch.Tensor)]
    return side.arena.fenced() and all(map(_same, side.arena.tensors, given))


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
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.is_cuda:  # 16 MB need 14 ms to the host
        bits = (t.detach().to(a.device).contiguous().view(-1).view(torch.uint8) for t in (a, b))
        return bool(torch.equal(*bits))
    one, two = (t.detach().cpu().contiguous() for t in (a, b))
    size = one.numel() * one.element_size()
    return bool(_LIBC.memcmp(one.data_ptr(), two.data_ptr(), size) == 0)


def _output_bytes(exp: Expected) -> list[int]:
    sizes_ = []
    for goal in exp.goals:
        count = 1
        for n in goal.shape:
            count *= n
        itemsize = getattr(getattr(torch, goal.dtype, None), "itemsize", 8)
        sizes_.append(count * itemsize)
    return sizes_
