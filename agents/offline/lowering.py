"""The building of a program from traced nodes: loads, views, maps, reductions."""

import math
from collections.abc import Sequence

from agents.offline import atoms
from agents.offline.axes import Axes, UncoveredError
from agents.offline.module import attribute
from agents.offline.program import Tensor, Value, broadcast, const, count
from data.records import Node

INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
FLOATS = ("float32",)


class Lowering:
    """Values of the nodes seen so far, and the wrapper's lines that they need."""

    def __init__(self, graph: Sequence[Node]) -> None:
        self.axes = Axes()
        self.values: dict[str, Value | tuple[Value, ...]] = {}
        self.setup: list[str] = []
        self.inputs: list[str] = []
        self.nodes = {n.name: n for n in graph}

    # -- leaves -------------------------------------------------------------------------------

    def tensor(self, node: Node) -> Value:
        """An input or a parameter."""
        name = f"t{len(self.setup)}"
        if node.op == "input":
            self.inputs.append(node.name)
            self.setup.append(f"{name} = {node.name}.contiguous()")
        else:
            self.setup.append(f"{name} = {attribute(node.name)}")
        dims = self.axes.dims(node.shape, name)
        strides = tuple(math.prod(node.shape[d + 1 :]) for d in range(len(node.shape)))
        return self.load(Tensor(name=name, base=name, axes=dims, strides=strides, dtype=node.dtype))

    def load(self, tensor: Tensor) -> Value:
        kind = {"bool": "b", "float32": "f"}.get(tensor.dtype, "i")
        if tensor.dtype not in (*FLOATS, *INTEGERS, "bool"):
            raise UncoveredError(f"has no template for {tensor.dtype} tensors")
        return Value(op="load", dims=tensor.axes, kind=kind, tensor=tensor, needs=("convert",))

    def view(self, value: Value, call: str, node: Node, strides: Sequence[int]) -> Value:
        """A strided part of a loaded tensor, made in Python by `call` behind its name."""
        if value.tensor is None or value.op != "load":
            raise UncoveredError(f"has no template for {node.op} of a computed value")
        if value.dims != value.tensor.axes:
            raise UncoveredError(f"has no template for {node.op} after another view")
        name = f"t{len(self.setup)}"
        self.setup.append(f"{name} = {value.tensor.name}{call}")
        dims = self.axes.dims(node.shape, name)
        return self.load(
            Tensor(
                name=name,
                base=value.tensor.base,
                axes=dims,
                strides=tuple(strides),
                dtype=value.tensor.dtype,
            )
        )

    def length(self, name: str, dim: int) -> Value:
        """The length of an input along a dimension, as a number."""
        value = self.values.get(name)
        if not isinstance(value, Value) or value.tensor is None:
            raise UncoveredError("cannot tell a size that the operator computes with")
        return count(value.tensor.axes[dim])

    # -- elementwise --------------------------------------------------------------------------

    def map(self, text: str, *args: Value, need: str = "", kind: str = "f") -> Value:
        """`text` on float lanes of the broadcast arguments; masks and integers are converted."""
        return self.raw(text, *map(as_float, args), need=need, kind=kind)

    def raw(self, text: str, *args: Value, need: str = "", kind: str = "f") -> Value:
        dims = broadcast(self.axes, args)
        needs = (need,) if need else ()
        return Value(op="map", args=args, dims=dims, kind=kind, text=text, needs=needs)

    def unary(self, name: str, x: Value) -> Value:
        text, need = atoms.UNARY[name]
        return self.map(text, x, need=need)

    def mul(self, a: Value, b: Value) -> Value:
        return self.map("({0} * {1})", a, b)

    def add(self, a: Value, b: Value) -> Value:
        return self.map("({0} + {1})", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.map("({0} - {1})", a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.map("({0} / {1})", a, b)

    # -- along axes ---------------------------------------------------------------------------

    def places(self, value: Value, dims: object) -> tuple[int, ...]:
        """Positions that `dims` (None, int or list) means."""
        rank = len(value.dims)
        if dims is None or dims == ():
            return tuple(range(rank))
        if isinstance(dims, int):
            dims = (dims,)
        if not isinstance(dims, Sequence):
            raise UncoveredError(f"cannot read the dimensions {dims!r}")
        return tuple(int(d) % rank for d in dims) if rank else ()

    def reduce(self, how: str, value: Value, dims: object = None, *, keep: bool = False) -> Value:
        """`sum`, `prod`, `max`, `min`, `argmax` or `argmin`."""
        value = as_float(value)
        places = self.places(value, dims)
        over = tuple(a for p in places for a in value.dims[p])
        left = tuple(
            () if p in places else dim
            for p, dim in enumerate(value.dims)
            if keep or p not in places
        )
        kind = "i" if how.startswith("arg") else "f"
        return Value(op="reduce", args=(value,), dims=left, text=how, over=over, kind=kind)

    def mean(self, value: Value, dims: object = None, *, keep: bool = False) -> Value:
        total = self.reduce("sum", value, dims, keep=keep)
        return self.div(total, count(total.over))

    def scan(self, how: str, value: Value, dim: int) -> Value:
        """`sum`, `prod`, or either with `reverse_` before it."""
        value = as_float(value)
        over = value.dims[dim % len(value.dims)]
        return Value(op="scan", args=(value,), dims=value.dims, text=how, over=over)


def as_float(value: Value) -> Value:
    """The value in float lanes: masks are 1 and 0."""
    if value.kind == "f":
        return value
    text = "__builtin_convertvector({0}, V)"
    if value.kind == "b":
        text = "({0} ? splat(1.0f) : splat(0.0f))"
    return Value(op="map", args=(value,), dims=value.dims, text=text)


def as_mask(value: Value) -> Value:
    """The value as a mask: not zero."""
    if value.kind == "b":
        return value
    zero = "splat_i(0)" if value.kind == "i" else "0.0f"
    return Value(op="map", args=(value,), dims=value.dims, kind="b", text="({0} != " + zero + ")")


def scalar(value: object) -> Value:
    """A Python number as a constant."""
    if not isinstance(value, (bool, int, float)):
        raise UncoveredError(f"cannot read the number {value!r}")
    return const(atoms.number(value))
