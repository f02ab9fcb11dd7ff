"""Tensors in memory that the judge and one child both map, at addresses that stay.

The judge overwrites inputs in place, and sees what a child did to them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from targets.remote.memory import HostMemory, Memory

ALIGN = 4096
"""A page: no two tensors share a cache line or a page."""
FENCE = 0xFF
"""Bytes round the tensors, at least a page behind each: NaN for all floating types."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies in an arena; strides count elements, offset bytes."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def span(self) -> int:
        """Elements from the first to the last, gaps included."""
        return span(self.shape, self.strides)


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements between the first and the last address of a strided tensor, both included.

    >>> span((2, 3), (3, 1)), span((2, 0), (1, 1)), span((), ())
    (6, 0, 1)
    """
    if 0 in shape:
        return 0
    return 1 + sum((s - 1) * t for s, t in zip(shape, strides, strict=True))


def dtype_of(name: str) -> torch.dtype:
    """`float32` to `torch.float32`; ValueError for anything that is no dtype."""
    found = getattr(torch, name, None) if name.isidentifier() else None
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{name!r} is no dtype")  # noqa: TRY004 (a wrong value of a message)
    return found


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def layout(tensors: Sequence[torch.Tensor]) -> tuple[list[Place], int]:
    """A place for each tensor and the size of the arena in bytes."""
    places, offset = [], 0
    for t in tensors:
        place = Place(name_of(t.dtype), tuple(t.shape), tuple(t.stride()), offset)
        places.append(place)
        offset = layout_size(places)
    return places, layout_size(places)


class Arena:
    """Shared memory with tensors in it."""

    def __init__(self, memory: Memory, places: Sequence[Place]) -> None:
        self.memory, self.places = memory, tuple(places)
        self.tensors = [_tensor(memory, p) for p in places]

    @classmethod
    def holding(
        cls, tensors: Sequence[torch.Tensor], new: Callable[[int], Memory] = HostMemory.new
    ) -> "Arena":
        """A new arena with copies of the tensors, strides kept."""
        places, size = layout(tensors)
        arena = cls(new(size), places)
        for start, end in arena.gaps():
            arena.memory.flat[start:end].fill_(FENCE)
        for mine, t in zip(arena.tensors, tensors, strict=True):
            _copy(mine, t)
        return arena

    @classmethod
    def shaped(
        cls, tensors: Sequence[torch.Tensor], new: Callable[[int], Memory] = HostMemory.new
    ) -> "Arena":
        """A new arena with room for tensors of these forms; what it holds is nobody's business."""
        places, size = layout(tensors)
        return cls(new(size), places)

    @property
    def fd(self) -> int:
        return self.memory.fd

    @property
    def size(self) -> int:
        """Bytes that tensors were laid out in; the memory may be larger."""
        return layout_size(self.places)

    def gaps(self) -> list[tuple[int, int]]:
        """The bytes, from and to, that belong to no tensor."""
        starts = [p.offset for p in self.places]
        ends = [p.offset + p.span * dtype_of(p.dtype).itemsize for p in self.places]
        return list(zip([0, *ends], [*starts, self.size], strict=True))

    def fits(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether the tensors here have these forms, so that new contents can overwrite them."""
        return len(tensors) == len(self.tensors) and all(
            a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride()
            for a, b in zip(self.tensors, tensors, strict=True)
        )

    def fenced(self) -> bool:
        """Whether nothing was written beside the tensors."""
        flat = self.memory.flat
        return all(bool((flat[a:b] == FENCE).all()) for a, b in self.gaps())

    def header(self) -> dict[str, Any]:
        """What the other side needs to map the same tensors, as JSON."""
        rows = [[p.dtype, p.shape, p.strides, p.offset] for p in self.places]
        return {"size": self.memory.size, "places": rows}

    @classmethod
    def of_header(
        cls,
        fd: int,
        header: dict[str, Any],
        attach: Callable[[int, int], Memory] = HostMemory,
    ) -> "Arena":
        """The other side of `header`."""
        rows = header["places"]
        places = [Place(d, tuple(s), tuple(t), o) for d, s, t, o in rows]
        return cls(attach(fd, header["size"]), places)

    def fill(self, index: int, other: "Arena") -> None:
        """The other's bytes, at the place of the set of that number."""
        size = other.size
        self.memory.flat[index * size : (index + 1) * size].copy_(other.memory.flat[:size])

    def same(self, index: int, other: "Arena") -> bool:
        """Whether the set of that number holds the other's bytes."""
        size = other.size
        mine = self.memory.flat[index * size : (index + 1) * size]
        return bool(torch.equal(mine, other.memory.flat[:size]))

    def close(self) -> None:
        """Gives the descriptor back; the mapping goes with the last tensor."""
        self.memory.close()

    def free(self) -> None:
        """Gives all back: its tensors may not be used any more."""
        self.tensors = []
        self.memory.free()


def layout_size(places: Sequence[Place]) -> int:
    """Bytes from the first place to the fence behind the last, in whole pages."""
    if not places:
        return ALIGN
    last = places[-1]
    size = max(last.span * int(dtype_of(last.dtype).itemsize), 1)
    return last.offset + -(-size // ALIGN) * ALIGN + ALIGN


def _tensor(memory: Memory, place: Place) -> torch.Tensor:
    dtype, count = dtype_of(place.dtype), place.span
    if count == 0:
        return torch.empty(place.shape, dtype=dtype, device=memory.flat.device)
    flat = memory.part(place.offset, count * dtype.itemsize).view(dtype)
    return flat.as_strided(place.shape, place.strides)


def _copy(mine: torch.Tensor, theirs: torch.Tensor) -> None:
    if 0 in mine.stride() and mine.numel():  # expanded: several indices, one address
        index = tuple(slice(0, 1) if s == 0 else slice(None) for s in mine.stride())
        mine, theirs = mine[index], theirs[index]
    mine.copy_(theirs.detach())


def pack(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Plain JSON for an argument; tensors go to the list and are named by their place in it."""
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach())
        return {"tensor": len(tensors) - 1}
    if isinstance(value, torch.dtype):
        return {"dtype": name_of(value)}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [pack(v, tensors) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(k, tensors), pack(v, tensors)] for k, v in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"an argument of type {type(value).__name__} cannot be handed to a child")


def unpack(value: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """The argument that `pack` made plain."""
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "tensor":
        return tensors[inner]
    if kind == "dtype":
        return dtype_of(inner)
    if kind == "device":
        return torch.device(inner)
    if kind == "dict":
        return {unpack(k, tensors): unpack(v, tensors) for k, v in inner}
    items = [unpack(v, tensors) for v in inner]
    return tuple(items) if kind == "tuple" else items
