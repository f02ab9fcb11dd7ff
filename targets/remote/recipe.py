"""How an operator's own input recipe is run at another size, and without oversized requests."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

CHANGE = re.compile(r"(leading )?(\d+) as (\d+)")

SIZED = frozenset({"rand", "randn", "zeros", "ones", "empty", "full", "randint", "normal"})
"""Factories of torch that take a size; `arange` and `randperm` take a count."""
COUNTED = frozenset({"arange", "randperm"})


@dataclass(frozen=True, slots=True)
class Change:
    """One size, replaced wherever the recipe asks for it."""

    old: int
    new: int
    leading: bool = False
    """On the first axis of a tensor only."""

    def __str__(self) -> str:
        return f"{'leading ' if self.leading else ''}{self.old} as {self.new}"

    def apply(self, extent: int, axis: int) -> int:
        return self.new if extent == self.old and not (self.leading and axis) else extent


@dataclass(frozen=True, slots=True)
class Resize:
    """A shape made from a declared one; its name says how.

    >>> str(Resize("full", (Change(256, 61, leading=True), Change(8, 7))))
    'full, leading 256 as 61, 8 as 7'
    """

    base: str
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        return ", ".join([self.base, *map(str, self.changes)])

    def apply(self, size: Sequence[int]) -> tuple[int, ...]:
        """The new size; only the first change that fits an extent counts."""
        return tuple(self._extent(n, axis) for axis, n in enumerate(size))

    def _extent(self, extent: int, axis: int) -> int:
        changed = (c.apply(extent, axis) for c in self.changes)
        return next((n for n in changed if n != extent), extent)


def derived(shape: str) -> Resize:
    """The resizing that a shape's name states; no changes for a declared name.

    >>> derived("full, leading 256 as 61")
    Resize(base='full', changes=(Change(old=256, new=61, leading=True),))
    """
    base, *words = shape.split(", ")
    found = [CHANGE.fullmatch(word) for word in words]
    changes = [Change(int(f[2]), int(f[3]), leading=bool(f[1])) for f in found if f]
    return Resize(base, tuple(changes))


class Recipe(TorchFunctionMode):  # type: ignore[misc]  # torch is untyped here
    """Inside, torch's factories give the resized tensors, on this machine's CPU."""

    def __init__(self, resize: Resize | None = None) -> None:
        super().__init__()
        self.resize = resize

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        kwargs = dict(kwargs or {})
        if name in SIZED or name in COUNTED:
            kwargs.pop("device", None)
            if self.resize is not None and self.resize.changes:
                args, kwargs = resized(name, args, kwargs, self.resize)
        return func(*args, **kwargs)


def resized(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], resize: Resize
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a factory call with its size replaced.

    >>> resized("randn", (256, 8), {}, Resize("full", (Change(256, 61),)))
    ((61, 8), {})
    >>> resized("randint", (0, 256, (256,)), {}, Resize("full", (Change(256, 61),)))
    ((0, 256, (61,)), {})
    """
    kwargs = {k: resize.apply(v) if k == "size" else v for k, v in kwargs.items()}
    if args and all(isinstance(a, int) for a in args):
        plain = name in SIZED - {"randint", "full", "normal"} or len(args) == 1
        return (resize.apply(args) if plain else tuple(args)), kwargs
    is_size = [isinstance(a, (tuple, list, torch.Size)) for a in args]
    return tuple(resize.apply(a) if s else a for a, s in zip(args, is_size, strict=True)), kwargs


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers of torch and Python from `seed`, and as before afterwards."""
    before = random.getstate()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(before)
