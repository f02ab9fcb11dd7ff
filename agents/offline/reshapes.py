"""Lowering rules of views: most only rename dimensions, some are strided loads."""

from dataclasses import replace

from agents.offline.axes import Dim
from agents.offline.lookups import one, part
from agents.offline.lowering import Lowering
from agents.offline.program import Value
from agents.offline.rule import Arguments, Rule, ints
from data.records import Node


def same(_: Lowering, __: Node, a: Arguments) -> Value:
    """The value itself: contiguous, clone, detach."""
    return a.tensor(0)


def renamed(value: Value, dims: tuple[Dim, ...]) -> Value:
    """The value with its dimensions in another order or grouping."""
    if value.op == "load":
        return replace(value, dims=dims)
    return Value(op="map", args=(value,), dims=dims, kind=value.kind, text="{0}")


def _view(state: Lowering, node: Node, a: Arguments) -> Value:
    x = a.tensor(0)
    return renamed(x, state.axes.regroup(x.dims, node.shape))


def _permute(_: Lowering, node: Node, a: Arguments) -> Value:
    x = a.tensor(0)
    rank = len(x.dims)
    if ".permute." in node.op:
        order = [d % rank for d in ints(a.plain(1, "dims"))]
    else:
        order = list(range(rank))
        i, j = (a.plain(1, "dim0"), a.plain(2, "dim1")) if ".transpose." in node.op else (-2, -1)
        if rank > 1:
            order[i % rank], order[j % rank] = order[j % rank], order[i % rank]
    return renamed(x, tuple(x.dims[d] for d in order))


def _unsqueeze(_: Lowering, __: Node, a: Arguments) -> Value:
    x = a.tensor(0)
    place = int(a.plain(1, "dim")) % (len(x.dims) + 1)
    return renamed(x, (*x.dims[:place], (), *x.dims[place:]))


def _squeeze(state: Lowering, _: Node, a: Arguments) -> Value:
    x = a.tensor(0)
    places = state.places(x, a.plain(1, "dim"))
    dims = tuple(d for p, d in enumerate(x.dims) if d or p not in places)
    return renamed(x, dims)


def _expand(_: Lowering, node: Node, a: Arguments) -> Value:
    x = a.tensor(0)
    if ints(node.shape) and any(
        n != 1 and not dim
        for n, dim in zip(reversed(node.shape), [*reversed(x.dims), *[()] * 9], strict=False)
    ):
        # Broadcasting does it when a later operand has the axis; an output needs the axis itself.
        rank = len(node.shape)
        return renamed(x, (*[()] * (rank - len(x.dims)), *x.dims))
    return x


def _slice(state: Lowering, node: Node, a: Arguments) -> Value:
    x = a.tensor(0)
    rank = len(x.dims)
    dim, start, end, step = (
        int(a.plain(1, "dim", 0)) % rank, a.plain(2, "start", 0), a.plain(3, "end", 2**62),
        a.plain(4, "step", 1),
    )  # fmt: skip
    extent = state.axes.extent(x.dims[dim])
    if start == 0 and end >= extent and step == 1:
        return x
    if not _plain(x):
        return part(state, x, dim, (start % extent, step, node.shape[dim]))
    last = "" if end >= extent else str(end)
    index = ", ".join([":"] * dim + [f"{start}:{last}:{step}"])
    strides = list(_strides(x))
    strides[dim] *= step
    return state.view(x, f"[{index}]", node, strides)


def _select(state: Lowering, node: Node, a: Arguments) -> Value:
    x = a.tensor(0)
    dim = int(a.plain(1, "dim")) % len(x.dims)
    if not _plain(x):
        index = int(a.plain(2, "index")) % state.axes.extent(x.dims[dim])
        return one(state, x, dim, index)
    strides = [s for d, s in enumerate(_strides(x)) if d != dim]
    return state.view(x, f".select({dim}, {a.plain(2, 'index')})", node, strides)


def _chunk(state: Lowering, node: Node, a: Arguments) -> tuple[Value, ...]:
    x, parts = a.tensor(0), int(a.plain(1, "chunks"))
    dim = int(a.plain(2, "dim", 0)) % len(x.dims)
    extent = state.axes.extent(x.dims[dim])
    a.refuse(extent % parts, "parts of different lengths")
    shape = [state.axes.extent(d) for d in x.dims]
    shape[dim] //= parts
    if not _plain(x):
        size = shape[dim]
        return tuple(part(state, x, dim, (k * size, 1, size)) for k in range(parts))
    share = Node(name="", op=node.op, shape=tuple(shape))
    strides = _strides(x)
    return tuple(
        state.view(x, f".chunk({parts}, {dim})[{k}]", share, strides) for k in range(parts)
    )


def _plain(value: Value) -> bool:
    """Whether the value is a tensor as it lies, of which PyTorch makes a view."""
    return value.op == "load" and value.tensor is not None and value.dims == value.tensor.axes


def _strides(value: Value) -> tuple[int, ...]:
    assert value.tensor is not None
    return value.tensor.strides


def _parts(state: Lowering, _: Node, a: Arguments) -> tuple[Value, ...]:
    """Parts of different lengths."""
    x, lengths = a.tensor(0), ints(a.plain(1, "split_sizes"))
    dim = int(a.plain(2, "dim", 0)) % len(x.dims)
    starts = [sum(lengths[:k]) for k in range(len(lengths))]
    return tuple(
        part(state, x, dim, (start, 1, length))
        for start, length in zip(starts, lengths, strict=True)
    )


def _split(state: Lowering, node: Node, a: Arguments) -> tuple[Value, ...]:
    x, size = a.tensor(0), a.plain(1, "split_size")
    dim = int(a.plain(2, "dim", 0)) % len(x.dims)
    extent = state.axes.extent(x.dims[dim])
    a.refuse(not isinstance(size, int) or extent % size, "parts of different lengths")
    plain = Node(name="", op=node.op, args=(node.args[0], extent // size, dim), shape=node.shape)
    return _chunk(state, plain, Arguments(state, plain))


def _item(_: Lowering, __: Node, a: Arguments) -> Value:
    return a.several(0)[int(a.plain(1, "index"))]


def _together(_: Lowering, __: Node, a: Arguments) -> tuple[Value, ...]:
    """`broadcast_tensors`: later operators broadcast by themselves."""
    return a.listed(0)


def _glu(state: Lowering, node: Node, a: Arguments) -> Value:
    dim = a.plain(1, "dim", -1)
    plain = Node(name="", op=node.op, args=(node.args[0], 2, dim))
    x, gate = _chunk(state, plain, Arguments(state, plain))
    return state.mul(x, state.unary("sigmoid", gate))


def _arange(state: Lowering, node: Node, a: Arguments) -> Value:
    numbers = [v for v in node.args if isinstance(v, (int, float))]
    start = 0 if len(numbers) < 2 else numbers[0]
    a.refuse(start != 0 or (len(numbers) > 2 and numbers[2] != 1), "a start or a step")
    return Value(op="iota", dims=((state.axes.new(node.shape[0]),),), kind="i")


RESHAPES: dict[str, Rule] = {
    **dict.fromkeys(("contiguous", "clone", "detach", "alias", "lift_fresh_copy"), same),
    **dict.fromkeys(("view", "reshape", "flatten", "unflatten", "_unsafe_view"), _view),
    **dict.fromkeys(("permute", "transpose", "t", "numpy_T", "mT"), _permute),
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "expand_as": _expand,
    "slice": _slice,
    "select": _select,
    "chunk": _chunk,
    "split": _split,
    "split_with_sizes": _parts,
    "getitem": _item,
    "broadcast_tensors": _together,
    "glu": _glu,
    "arange": _arange,
}
