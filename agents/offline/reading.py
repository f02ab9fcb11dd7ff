"""Reads at computed places: a value seen at other indices than its own.

`moved` rewrites a value so that some of its axes are walked by indices of the reader's choice: its
loads become reads at computed addresses, everything else stays as it is. Slices, concatenations,
look-ups, padding and windows are made of it.
"""

from collections.abc import Mapping
from dataclasses import replace

from agents.offline.axes import Dim, UncoveredError
from agents.offline.lowering import Lowering, as_float
from agents.offline.program import Tensor, Value, const

BEHIND = "({0} - {1})"
"""An index so many places before another one."""


def iota(axis: Dim) -> Value:
    """The index along an axis."""
    return Value(op="iota", dims=(axis,), kind="i")


def whole(number: int) -> Value:
    """An integer."""
    return Value(op="const", kind="i", text=str(number))


def length(axis: Dim) -> Value:
    """The number of elements along an axis, as an integer."""
    return Value(op="count", over=axis, kind="i")


def mapped(text: str, *args: Value, kind: str = "i", dims: tuple[Dim, ...] | None = None) -> Value:
    """`text` of the arguments; without `dims` on all their axes, in the order of first use."""
    if dims is None:
        dims = tuple((a,) for a in dict.fromkeys(a for v in args for a in v.axes))
    return Value(op="map", args=args, dims=dims, kind=kind, text=text)


def as_index(value: Value) -> Value:
    """The value in integer lanes."""
    if value.kind == "i":
        return value
    return mapped("__builtin_convertvector({0}, I)", as_float(value), dims=value.dims)


def within(index: Value, extent: Value) -> Value:
    """Whether the index is in [0, extent)."""
    return mapped("(({0} >= 0) & ({0} < {1}))", index, extent, kind="b")


def wrapped(index: Value, axis: Dim) -> Value:
    """An index from the end, which is negative, as one from the start."""
    return mapped("({0} < 0 ? {0} + {1} : {0})", index, length(axis))


def moved(state: Lowering, value: Value, indices: Mapping[int, Value]) -> Value:
    """The value with each of these axes walked by its index; reads outside a tensor are 0."""
    return _Mover(state, indices).of(value)


class _Mover:
    def __init__(self, state: Lowering, indices: Mapping[int, Value]) -> None:
        self.state, self.indices = state, indices
        self.done: dict[int, Value] = {}

    def of(self, value: Value) -> Value:
        if id(value) not in self.done:
            self.done[id(value)] = self._of(value)
        return self.done[id(value)]

    def _of(self, value: Value) -> Value:
        axes = self.state.axes
        if not set(axes.leaves(value.axes)) & set(self.indices):
            return value
        if value.op == "load":
            return self._read(value)
        if value.op == "iota":
            return replace(self._index(value.dims[0]), dims=self._dims(value))
        if value.op == "map" and value.text != "flip":
            return replace(value, args=tuple(map(self.of, value.args)), dims=self._dims(value))
        if value.op == "reduce" and not set(axes.leaves(value.over)) & set(self.indices):
            return replace(value, args=(self.of(value.args[0]),), dims=self._dims(value))
        if value.op == "scan" and self._later(value):
            return self._delayed(value)
        raise UncoveredError("has no template that reads a sum, a scan or a product elsewhere")

    def _later(self, value: Value) -> bool:
        """Whether a scan from the start is read a number of places later."""
        (leaf, *others) = self.state.axes.leaves(value.over)
        index = self.indices.get(leaf)
        if others or index is None or value.text.startswith("reverse_"):
            return False
        return index.text == BEHIND and index.args[0].op == "iota"

    def _delayed(self, value: Value) -> Value:
        """The scan of what lies these places later, behind elements that change nothing."""
        (leaf,) = self.state.axes.leaves(value.over)
        index, one = self.indices[leaf], "1.0f" if value.text == "prod" else "0.0f"
        inside = within(index, length((leaf,)))
        argument = chosen(inside, self.of(value.args[0]), const(one))
        return replace(value, args=(argument,), dims=self._dims(value), over=index.axes)

    def _dims(self, value: Value) -> tuple[Dim, ...]:
        return tuple(
            tuple(
                a
                for leaf in self.state.axes.leaves(dim)
                for a in (self.indices[leaf].axes if leaf in self.indices else (leaf,))
            )
            for dim in value.dims
        )

    def _index(self, dim: Dim) -> Value:
        """The index along a dimension from those along its axes."""
        found: Value | None = None
        for leaf in self.state.axes.leaves(dim):
            own = self.indices.get(leaf) or iota((leaf,))
            found = own if found is None else mapped(
                "({0} * {1} + {2})", found, length((leaf,)), own
            )  # fmt: skip
        return whole(0) if found is None else found

    def _read(self, value: Value) -> Value:
        tensor = value.tensor
        assert tensor is not None
        indices = [self._index(dim) for dim in tensor.axes]
        return replace(read(tensor, indices), dims=self._dims(value))


def read(tensor: Tensor, indices: list[Value]) -> Value:
    """The tensor's element at these indices, one a dimension; 0 outside of it."""
    kind = {"bool": "b", "float32": "f"}.get(tensor.dtype, "i")
    terms = [f"{{{k}}} * splat_i((int)d_{tensor.name}_{k})" for k in range(len(indices))]
    base = tensor.base if tensor.name == tensor.base else f"{tensor.base} + x_{tensor.name}"
    call = "PICK" if kind == "f" else "PICK_I"
    text = f"{call}({base}, ({' + '.join(terms) or 'splat_i(0)'}), e_{tensor.name})"
    text = f"({text} != 0)" if kind == "b" else text
    dims = tuple((a,) for a in dict.fromkeys(a for v in indices for a in v.axes))
    return Value(op="map", args=tuple(indices), dims=dims, kind=kind, text=text, tensor=tensor)


def chosen(mask: Value, value: Value, other: Value) -> Value:
    """`value` where the mask holds."""
    same = value.kind == other.kind
    first, second = (value, other) if same else (as_float(value), as_float(other))
    return mapped("({0} ? {1} : {2})", mask, first, second, kind=first.kind, dims=value.dims)
