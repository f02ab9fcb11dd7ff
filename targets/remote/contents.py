"""What timed calls compute on: contents never seen before, in place, for all sides alike."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from targets.remote.arena import Arena, Place, layout, pack, unpack
from targets.remote.draws import domains_of, refill
from targets.remote.memory import Writes
from targets.remote.operator import LoadedOperator

POOL = 3
"""Recipes drawn a shape; each use of one is rolled and scaled anew."""
PATCHED = 3
"""Elements of each input that come with the start signal."""
KEPT = 64
"""Values of each input at hand for that."""
SCALES = (0.8, 1.25)
"""Of values that may be any: rolled alone, a sum or a maximum would be the same again."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One element that comes with the start signal."""

    tensor: int
    step: int
    """Elements in memory from the tensor's first one."""
    offset: int
    """Bytes from the start of the input set."""
    new: bytes


@dataclass(frozen=True, slots=True)
class _Turned:
    """A recipe's tensor, from another first element (or row) on and times a factor."""

    source: torch.Tensor
    flat: bool
    shift: int
    scale: float

    def into(self, mine: torch.Tensor) -> None:
        """Writes the values to a tensor of the same form."""
        for source, target in self.parts(mine):
            if self.scale == 1.0:
                target.copy_(source)
            else:
                torch.mul(source, self.scale, out=target)

    def parts(self, mine: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """(Source, target) of what is to be copied, not scaled yet."""
        source, target = (t.view(-1) if self.flat else t for t in (self.source, mine))
        if not self.shift:
            return [(source, target)]
        split = source.shape[0] - self.shift
        return [(source[self.shift :], target[:split]), (source[: self.shift], target[split:])]


@dataclass(frozen=True, slots=True)
class Content:
    """One input set, made where it is needed, and what completes it at the start signal."""

    turned: tuple[_Turned, ...]
    args: tuple[Any, ...]
    patch: tuple[Patch, ...]
    size: int
    """Bytes of a set in an arena."""

    def into(self, arena: Arena, index: int) -> None:
        """Writes the set to its place in a side's arena, before the clock starts."""
        first = index * len(self.turned)
        for turned, mine in zip(self.turned, arena.tensors[first:], strict=False):
            if not _expanded(mine):
                turned.into(mine)

    def values(self) -> list[torch.Tensor]:
        """The judge's own copy, complete."""
        found = []
        for turned in self.turned:
            found.append(torch.empty_like(turned.source))
            turned.into(found[-1])
        for p in self.patch:
            t = found[p.tensor]
            new = torch.frombuffer(bytearray(p.new), dtype=t.dtype)
            t.as_strided((1,), (1,), p.step).copy_(new)
        return found

    def untouched(self, arena: Arena, index: int) -> bool:
        """Whether the side's set still is what it was given, start signal included."""
        first = index * len(self.turned)
        pairs = zip(self.values(), arena.tensors[first:], strict=False)
        return all(torch.equal(_raw_view(mine), _raw_view(theirs)) for mine, theirs in pairs)

    def inputs(self) -> list[Any]:
        """The arguments with a copy of their values."""
        values = self.values()
        return [unpack(a, values) for a in self.args]


class Contents:
    """A pool of input sets of one shape, from which new ones are made cheaply."""

    def __init__(self, loaded: LoadedOperator, shape: str, seed: int) -> None:
        self._random = random.Random(seed)
        sets = [refill(loaded, shape, seed + 101 * k) for k in range(POOL)]
        kinds = [d.kind for d in domains_of(loaded, shape, sets[0])]
        self._pool: list[list[torch.Tensor]] = []
        for inputs in sets:
            tensors: list[torch.Tensor] = []
            self._args = tuple(pack(v, tensors) for v in inputs)
            self._pool.append(tensors)
        several = [k for v, k in zip(sets[0], kinds, strict=True) for _ in range(_tensors_in(v))]
        still = [_expanded(t) for t in self._pool[0]]  # written once, when the arena is made
        self._kinds = ["fixed" if s else k for s, k in zip(still, several, strict=True)]
        self._pool = [
            [first if s else t for s, first, t in zip(still, self._pool[0], tensors, strict=True)]
            for tensors in self._pool
        ]
        self.example = sets[0]
        self._places, self.bytes = layout(self._pool[0])
        self._values = [
            self._some(t, place, kind)
            for t, place, kind in zip(self._pool[0], self._places, self._kinds, strict=True)
        ]

    def fresh(self) -> Content:
        """Values that no side has seen."""
        tensors = self._random.choice(self._pool)
        turned = tuple(map(self._turned, tensors, self._kinds))
        patch = [
            p
            for n, (t, place, kind) in enumerate(
                zip(turned, self._places, self._kinds, strict=True)
            )
            for p in self._patch(n, t, place, kind)
        ]
        return Content(turned, self._args, tuple(patch), self.bytes)

    def _turned(self, t: torch.Tensor, kind: str) -> _Turned:
        """Flat where any order is legal, by whole rows where a row has a structure."""
        flat = t.is_contiguous() and kind not in ("probability", "log_probability")
        if kind == "fixed" or t.numel() < 2 or not t.is_contiguous():
            return _Turned(t, flat, 0, 1.0)
        free = kind in ("real", "positive") and t.is_floating_point()
        scale = self._random.uniform(*SCALES) if free else 1.0
        shift = self._random.randrange(t.numel() if flat else t.shape[0])
        return _Turned(t, flat, shift, scale)

    def _patch(self, number: int, turned: _Turned, place: Place, kind: str) -> list[Patch]:
        """Each place once: nobody orders two writes to one."""
        t = turned.source
        if kind == "fixed" or t.numel() < 2:
            return []
        values = self._random.choices(self._values[number], k=PATCHED)
        places = dict.fromkeys(self._somewhere(t) for _ in range(PATCHED))
        return [
            Patch(number, step, place.offset + step * t.element_size(), self._random.choice(ways))
            for step, ways in zip(places, values, strict=False)
        ]

    def _some(self, t: torch.Tensor, place: Place, kind: str) -> list[tuple[bytes, ...]]:
        """Some of its values as bytes, each in its ways: made once, a batch takes 1,000."""
        if not t.numel():
            return []
        where = torch.tensor([self._somewhere(t) for _ in range(KEPT)], device=t.device)
        kept = t.as_strided((place.span,), (1,))[where].cpu()
        ways = [_raws(v) for v in _ways(kept, kind)]
        return list(zip(*ways, strict=True))

    def _somewhere(self, t: torch.Tensor) -> int:
        """Elements in memory from the first to a random one."""
        return sum(self._random.randrange(s) * k for s, k in zip(t.shape, t.stride(), strict=True))


def fill(contents: Sequence[Content], arena: Arena, first: int) -> None:
    """Writes the sets to the arena, from the set of number `first` on."""
    if not arena.memory.flat.is_cuda:
        for k, content in enumerate(contents):
            content.into(arena, first + k)
        return
    sources, targets, scales = [], [], []
    for k, content in enumerate(contents):  # few launches for all: one by one takes 4 times as long
        at = (first + k) * len(content.turned)
        for turned, mine in zip(content.turned, arena.tensors[at:], strict=False):
            parts = [] if _expanded(mine) else turned.parts(mine)
            sources += [source for source, _ in parts]
            targets += [target for _, target in parts]
            scales += [turned.scale] * len(parts)
    torch._foreach_copy_(targets, sources)
    scaled = [(t, s) for t, s in zip(targets, scales, strict=True) if s != 1.0]
    if scaled:
        torch._foreach_mul_([t for t, _ in scaled], [s for _, s in scaled])


def written(contents: Sequence[Content], first: int) -> Writes:
    """(Byte offset in a side's arena, what comes there with the start signal) of some sets."""
    return [
        ((first + k) * content.size + p.offset, p.new)
        for k, content in enumerate(contents)
        for p in content.patch
    ]


def _expanded(t: torch.Tensor) -> bool:
    """Whether several indices share an address."""
    return 0 in t.stride() and t.numel() > 1


def _raw_view(t: torch.Tensor) -> torch.Tensor:
    return t.contiguous().view(-1).view(torch.uint8)


def _ways(values: torch.Tensor, kind: str) -> list[torch.Tensor]:
    """The values themselves; where any value is legal, two that move the output."""
    if kind == "real" and values.is_floating_point():
        return [(values * 2.0 + by).to(values.dtype) for by in (-1.0, 1.0)]
    return [values]


def _raws(values: torch.Tensor) -> list[bytes]:
    rows = values.contiguous().view(-1, 1).view(torch.uint8)
    return [bytes(row) for row in rows.tolist()]


def _tensors_in(value: Any) -> int:
    found: list[torch.Tensor] = []
    pack(value, found)
    return len(found)
