"""Axes of a program: broadcasting makes two one, a view splits one in two.

A visible dimension is a tuple of axes, outermost first: `view` only regroups, so that any chain of
views costs nothing. An empty tuple is a dimension of size 1.
"""

import math
from collections.abc import Iterable, Sequence

Dim = tuple[int, ...]


class UncoveredError(Exception):
    """The library has no template for this; the message completes `the offline library ...`."""


class UnknownError(UncoveredError):
    """The family has no rule for one of the operator's calls; another family may have it."""


class Axes:
    """Equivalence classes of axes with their extents at the traced size."""

    def __init__(self) -> None:
        self._parents: list[int] = []
        self._children: dict[int, tuple[int, int]] = {}
        self._extents: list[int] = []
        self._sizes: dict[int, str] = {}

    def new(self, extent: int, size: str | None = None) -> int:
        """A fresh axis; `size` is its length as a Python expression, right at every size."""
        axis = len(self._parents)
        self._parents.append(axis)
        self._extents.append(extent)
        if size is not None:
            self._sizes[axis] = size
        return axis

    def dims(self, shape: Sequence[int], name: str) -> tuple[Dim, ...]:
        """Fresh axes for the tensor in the Python variable `name`."""
        return tuple(
            () if n == 1 else (self.new(n, f"{name}.shape[{d}]"),) for d, n in enumerate(shape)
        )

    def leaves(self, axes: Iterable[int]) -> Dim:
        """The same axes with unions resolved and splits followed."""
        found: list[int] = []
        for axis in axes:
            root = self._root(axis)
            split = self._children.get(root)
            found += self.leaves(split) if split else [root]
        return tuple(found)

    def extent(self, axes: Iterable[int]) -> int:
        return math.prod(self._extents[a] for a in self.leaves(axes))

    def size(self, axes: Iterable[int]) -> str:
        """Python expression of the length of a dimension."""
        parts = [self._size(a) for a in self.leaves(axes)]
        return " * ".join(f"({p})" if " " in p else p for p in parts) or "1"

    def unify(self, a: Dim, b: Dim) -> Dim:
        """The common dimension of two that are aligned; size 1 broadcasts."""
        left, right = list(self.leaves(a)), list(self.leaves(b))
        if not left or not right:
            return tuple(left or right)
        for place in range(max(len(left), len(right)) * 8):
            if place >= len(left) or place >= len(right):
                break
            one, two = self._extents[left[place]], self._extents[right[place]]
            if one > two:
                left[place : place + 1] = self.split(left[place], two)
            elif two > one:
                right[place : place + 1] = self.split(right[place], one)
            left[place] = self._unite(left[place], right[place])
        if len(left) != len(right):
            raise UncoveredError("cannot align these shapes")
        return tuple(left)

    def split(self, axis: int, outer: int, size: str | None = None) -> tuple[int, int]:
        """Two axes in place of one; `size` is the outer length as Python, fixed by default."""
        extent = self._extents[axis]
        if extent % outer:
            raise UncoveredError(f"cannot split an axis of {extent} by {outer}")
        size, whole = size or str(outer), self._sizes.get(axis)
        inner = f"{whole} // {size}" if whole else None
        self._children[axis] = (self.new(outer, size), self.new(extent // outer, inner))
        return self._children[axis]

    def regroup(self, dims: Sequence[Dim], target: Sequence[int]) -> tuple[Dim, ...]:
        """The dimensions of a view of `target` shape."""
        queue = [leaf for dim in dims for leaf in self.leaves(dim)]
        return tuple(self._take(queue, n) for n in target)

    def _take(self, queue: list[int], extent: int) -> Dim:
        taken: list[int] = []
        left = extent
        while left > 1:
            axis = queue.pop(0)
            if self._extents[axis] > left:
                axis, rest = self.split(axis, left)
                queue.insert(0, rest)
            if left % self._extents[axis]:
                raise UncoveredError("cannot follow a view of this shape")
            left //= self._extents[axis]
            taken.append(axis)
        return tuple(taken)

    def strides(self, axis: int, stride: str, step: int) -> dict[int, tuple[str, int]]:
        """Stride by leaf, as an expression and at the traced size, of one tensor dimension."""
        found: dict[int, tuple[str, int]] = {}
        for leaf in reversed(self.leaves((axis,))):
            found[leaf] = (stride, step)
            stride = f"{stride} * {self.size((leaf,))}".replace("// ", "//")
            step *= self._extents[leaf]
        return found

    def _root(self, axis: int) -> int:
        while self._parents[axis] != axis:
            axis = self._parents[axis]
        return axis

    def _unite(self, a: int, b: int) -> int:
        keep, drop = min(a, b), max(a, b)
        if keep != drop:
            self._parents[drop] = keep
            if drop in self._sizes:
                self._sizes.setdefault(keep, self._sizes[drop])
        return keep

    def _size(self, axis: int) -> str:
        if axis not in self._sizes:
            raise UncoveredError("cannot tell the size of an axis from the inputs")
        return self._sizes[axis]
