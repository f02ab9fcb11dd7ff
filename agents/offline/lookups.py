"""Lowering rules of what reads at other places: slices, joins, look-ups, padding, triangles."""

from collections.abc import Sequence

from agents.offline.lowering import Lowering, as_float, scalar
from agents.offline.program import Value
from agents.offline.reading import (
    BEHIND,
    as_index,
    chosen,
    iota,
    length,
    mapped,
    moved,
    whole,
    within,
    wrapped,
)
from agents.offline.rule import Arguments, Rule, ints
from data.records import Node


def elsewhere(state: Lowering, x: Value, place: int, index: Value) -> Value:
    """The value with the dimension at `place` walked by one index."""
    leaves = state.axes.leaves(x.dims[place])
    if not leaves:
        return x  # of length 1: there is one place to read
    inner: Value | None = None
    found: dict[int, Value] = {}
    for leaf in reversed(leaves):
        size = length((leaf,))
        own = index if inner is None else mapped("({0} / {1})", index, inner)
        found[leaf] = own if leaf == leaves[0] else mapped("({0} % {1})", own, size)
        inner = size if inner is None else mapped("({0} * {1})", inner, size)
    return moved(state, x, found)


def part(state: Lowering, x: Value, place: int, where: tuple[int, int, int]) -> Value:
    """Elements from a start on, some steps apart: (start, step, number of them)."""
    start, step, count = where
    if count == 1:
        result = elsewhere(state, x, place, whole(start))
        return _at(result, place, ())
    axis = (state.axes.new(count, str(count)),)
    index = mapped(f"({{0}} * {step} + {start})", iota(axis))
    return _at(elsewhere(state, x, place, index), place, axis)


def one(state: Lowering, x: Value, place: int, index: int) -> Value:
    """The elements at one index, without that dimension."""
    return _at(elsewhere(state, x, place, whole(index)), place, None)


def _at(value: Value, place: int, dim: tuple[int, ...] | None) -> Value:
    """The value with this dimension in that place; None takes the place away."""
    dims = list(value.dims)
    dims[place : place + 1] = [] if dim is None else [dim]
    return mapped("{0}", value, kind=value.kind, dims=tuple(dims))


def _cat(state: Lowering, node: Node, a: Arguments) -> Value:
    """Joined values: each is read where its part of the axis begins."""
    parts = a.listed(0)
    a.refuse(not parts or len(parts) != len(a.plain(0, "tensors")), "parts of this kind")
    place = int(a.plain(1, "dim", 0)) % len(parts[0].dims)
    extents = [state.axes.extent(p.dims[place]) for p in parts]
    sizes = [state.axes.size(p.dims[place]) for p in parts]
    axis = (state.axes.new(sum(extents), " + ".join(f"({s})" for s in sizes)),)
    start, result = whole(0), None
    for value in parts:
        index = mapped(BEHIND, iota(axis), start)
        own = elsewhere(state, value, place, index)
        own = _at(own if own.kind == "f" or node.dtype != "float32" else as_float(own), place, axis)
        result = own if result is None else chosen(
            mapped("({0} >= {1})", iota(axis), start, kind="b"), own, _aligned(state, result, own)
        )  # fmt: skip
        start = mapped("({0} + {1})", start, length(value.dims[place]))
    assert result is not None
    return result


def _aligned(state: Lowering, value: Value, other: Value) -> Value:
    """The value, its dimensions made one with those of the other."""
    for mine, theirs in zip(value.dims, other.dims, strict=True):
        state.axes.unify(mine, theirs)
    return value


def _narrow(state: Lowering, node: Node, a: Arguments) -> Value:
    x = a.tensor(0)
    place = int(a.plain(1, "dim")) % len(x.dims)
    extent = state.axes.extent(x.dims[place])
    start = int(a.plain(2, "start"))
    return part(state, x, place, (start % extent, 1, node.shape[place]))


def _embedding(state: Lowering, _: Node, a: Arguments) -> Value:
    return _rows(state, a.tensor(0), 0, a.tensor(1))


def _rows(state: Lowering, x: Value, place: int, index: Value) -> Value:
    """What an index tensor chooses along one dimension, whose place its own dimensions take."""
    dim = x.dims[place]
    found = elsewhere(state, x, place, wrapped(as_index(index), dim))
    dims = (*x.dims[:place], *index.dims, *x.dims[place + 1 :])
    return mapped("{0}", found, kind=found.kind, dims=dims)


def _index(state: Lowering, _: Node, a: Arguments) -> Value:
    """`x[:, index]` of a single index tensor."""
    x, places = a.tensor(0), a.plain(1, "indices")
    given = [k for k, v in enumerate(places) if v is not None]
    a.refuse(len(given) != 1, "several index tensors")
    index = Arguments(state, Node(name="", op=a.op, args=(places[given[0]],))).tensor(0)
    a.refuse(index.kind == "b", "a mask as index")
    return _rows(state, x, given[0], index)


def _index_select(state: Lowering, _: Node, a: Arguments) -> Value:
    x, index = a.tensor(0), a.tensor(2, "index")
    return _rows(state, x, int(a.plain(1, "dim")) % len(x.dims), index)


def _gather(state: Lowering, _: Node, a: Arguments) -> Value:
    x, index = a.tensor(0), a.tensor(2, "index")
    place = int(a.plain(1, "dim")) % len(x.dims)
    for k, (mine, theirs) in enumerate(zip(x.dims, index.dims, strict=True)):
        if k != place:
            a.refuse(state.axes.extent(mine) != state.axes.extent(theirs), "these sizes")
            state.axes.unify(mine, theirs)
    found = elsewhere(state, x, place, wrapped(as_index(index), x.dims[place]))
    return mapped("{0}", found, kind=found.kind, dims=index.dims)


def _pad(state: Lowering, node: Node, a: Arguments) -> Value:
    """Values beyond the ends are a constant."""
    x, pads = a.tensor(0), ints(a.plain(1, "pad"))
    named = ".pad." in a.op
    a.refuse(named and a.plain(2, "mode", "constant") != "constant", "this mode")
    fill = scalar(float(a.plain(3 if named else 2, "value", 0.0)))
    result = as_float(x)
    for k in range(len(pads) // 2):
        place, before, after = len(x.dims) - 1 - k, pads[2 * k], pads[2 * k + 1]
        if before or after:
            dim = result.dims[place]
            size = f"({state.axes.size(dim)}) + {before + after}"
            axis = (state.axes.new(node.shape[place], size),)
            index = mapped(f"({{0}} - {before})", iota(axis))
            own = _at(elsewhere(state, result, place, index), place, axis)
            result = chosen(within(index, length(dim)), own, fill)
    return result


def _roll(state: Lowering, _: Node, a: Arguments) -> Value:
    result = a.tensor(0)
    shifts, dims = ints(a.plain(1, "shifts")), ints(a.plain(2, "dims", ()))
    a.refuse(len(shifts) != len(dims), "all elements in a row")
    for shift, d in zip(shifts, dims, strict=True):
        place = d % len(result.dims)
        dim = result.dims[place]
        if dim:
            text = f"((({{0}} - {shift}) % {{1}} + {{1}}) % {{1}})"
            index = mapped(text, iota(dim), length(dim))
            result = _at(elsewhere(state, result, place, index), place, dim)
    return result


def _stack(state: Lowering, _: Node, a: Arguments) -> Value:
    parts = a.listed(0)
    a.refuse(len(parts) < 2 or len(parts) != len(a.plain(0, "tensors")), "parts of this kind")
    place = int(a.plain(1, "dim", 0)) % (len(parts[0].dims) + 1)
    axis = (state.axes.new(len(parts), str(len(parts))),)
    result = parts[-1]
    for k, value in reversed(list(enumerate(parts[:-1]))):
        mask = mapped(f"({{0}} == {k})", iota(axis), kind="b")
        result = chosen(mask, value, _aligned(state, result, value))
    dims = list(parts[0].dims)
    dims[place:place] = [axis]
    return mapped("{0}", result, kind=result.kind, dims=tuple(dims))


def _triangle(sign: str) -> Rule:
    """`tril` and `triu`: what lies on the other side of a diagonal is 0."""

    def rule(_: Lowering, __: Node, a: Arguments) -> Value:
        x, diagonal = as_float(a.tensor(0)), int(a.plain(1, "diagonal", 0))
        row, column = (iota(d) if d else whole(0) for d in x.dims[-2:])
        mask = mapped(f"({{1}} {sign} {{0}} + {diagonal})", row, column, kind="b")
        return chosen(mask, x, scalar(0.0))

    return rule


def sizes(value: object, rank: int) -> tuple[int, ...]:
    """One integer a spatial axis; a single one stands for all.

    >>> sizes(2, 3), sizes((1, 2), 2)
    ((2, 2, 2), (1, 2))
    """
    listed: Sequence[int] = (value,) if isinstance(value, int) else ints(value)
    return tuple(listed) * (rank if len(listed) == 1 else 1)


LOOKUPS: dict[str, Rule] = {
    "cat": _cat,
    "concat": _cat,
    "stack": _stack,
    "narrow": _narrow,
    "embedding": _embedding,
    "index": _index,
    "index_select": _index_select,
    "gather": _gather,
    "pad": _pad,
    "constant_pad_nd": _pad,
    "roll": _roll,
    "tril": _triangle("<="),
    "triu": _triangle(">="),
}
