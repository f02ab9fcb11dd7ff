"""What timed calls compute on: contents never seen before, in place, for all sides alike."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from targets.remote.accelerator import HOST, Kind
from targets.remote.arena import Arena, layout, pack, unpack
from targets.remote.draws import domains_of, refill
from targets.remote.operator import LoadedOperator

POOL = 3
"""Recipes drawn a shape; each use of one is rolled by another distance."""
PATCHED = 3
"""Elements of each input that come with the start signal."""

Patch = list[tuple[int, bytes, bytes]]
"""Byte offset in a set of inputs, what to write there, what was there before."""


@dataclass(frozen=True, slots=True)
class Content:
    """One input set as bytes, and the elements that are completed at the start signal."""

    staging: Arena
    args: tuple[Any, ...]
    patch: Patch

    def into(self, arena: Arena, index: int) -> None:
        """Copies the set to its place in a side's arena, before the clock starts."""
        arena.fill(index, self.staging)

    def complete(self) -> None:
        """Applies the patch to the judge's own copy."""
        self.staging.memory.writer([(offset, new) for offset, new, _ in self.patch])()

    def withdraw(self) -> None:
        """Takes the patch back, for the next side."""
        self.staging.memory.writer([(offset, old) for offset, _, old in reversed(self.patch)])()

    def untouched(self, arena: Arena, index: int) -> bool:
        """Whether the side's set still is what it was given; after `complete`."""
        return arena.same(index, self.staging)

    def inputs(self) -> list[Any]:
        """The arguments with a copy of their values."""
        return [unpack(a, [t.clone() for t in self.staging.tensors]) for a in self.args]


class Contents:
    """A pool of input sets of one shape, from which new ones are made cheaply."""

    def __init__(self, loaded: LoadedOperator, shape: str, seed: int, kind: Kind = HOST) -> None:
        self._new = kind.private
        self._random = random.Random(seed)
        sets = [refill(loaded, shape, seed + 101 * k) for k in range(POOL)]
        kinds = [d.kind for d in domains_of(loaded, shape, sets[0])]
        self._pool: list[list[torch.Tensor]] = []
        for inputs in sets:
            tensors: list[torch.Tensor] = []
            self._args = tuple(pack(v, tensors) for v in inputs)
            self._pool.append(tensors)
        self._kinds = [
            k for v, k in zip(sets[0], kinds, strict=True) for _ in range(_tensors_in(v))
        ]
        self._spare: list[Arena] = []
        self.example = sets[0]
        self.bytes = layout(self._pool[0])[1]

    def fresh(self) -> Content:
        """Values that no side has seen; a Content is good until `recycle`."""
        tensors = self._random.choice(self._pool)
        arena = self._spare.pop() if self._spare else Arena.holding(tensors, self._new)
        for mine, t, kind in zip(arena.tensors, tensors, self._kinds, strict=True):
            self._roll(mine, t, kind)
        patch = [p for n, k in enumerate(self._kinds) for p in self._patch(arena, n, k)]
        return Content(arena, self._args, patch)

    def recycle(self, contents: Sequence[Content]) -> None:
        """Their memory may be used for others."""
        self._spare += [c.staging for c in contents]

    def _roll(self, mine: torch.Tensor, t: torch.Tensor, kind: str) -> None:
        """Flat where any order is legal, by whole rows where a row has a structure."""
        if kind == "fixed" or t.numel() < 2 or not t.is_contiguous():
            mine.copy_(t)
            return
        rows = t if kind in ("probability", "log_probability") else t.view(-1)
        other = mine if rows is t else mine.view(-1)
        shift = self._random.randrange(rows.shape[0])
        other[: rows.shape[0] - shift] = rows[shift:]
        other[rows.shape[0] - shift :] = rows[:shift]

    def _patch(self, arena: Arena, number: int, kind: str) -> Patch:
        """Each place once: nobody orders two writes to one."""
        t, place = arena.tensors[number], arena.places[number]
        if kind == "fixed" or t.numel() < 2:
            return []
        steps = [self._somewhere(t) for _ in range(2 * PATCHED)]
        flat = t.as_strided((place.span,), (1,))
        values = flat[torch.tensor(steps, device=t.device)].cpu()
        found = {
            step: (_raw(self._value(other, kind)), _raw(old))
            for step, old, other in zip(steps, values, values[PATCHED:], strict=False)
        }
        return [(place.offset + k * t.element_size(), *both) for k, both in found.items()]

    def _somewhere(self, t: torch.Tensor) -> int:
        """Elements from the first to a random one."""
        return sum(self._random.randrange(s) * k for s, k in zip(t.shape, t.stride(), strict=True))

    def _value(self, other: torch.Tensor, kind: str) -> torch.Tensor:
        """Another element's value; where any value is legal, one that moves the output."""
        if kind == "real" and other.is_floating_point():
            return (other * 2.0 + self._random.choice((-1.0, 1.0))).to(other.dtype)
        return other


def _raw(value: torch.Tensor) -> bytes:
    return bytes(value.detach().clone().reshape(1).view(torch.uint8).tolist())


def _tensors_in(value: Any) -> int:
    found: list[torch.Tensor] = []
    pack(value, found)
    return len(found)
