"""What a fused kernel computes: values over named axes, free of loops and of layout."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.offline.axes import Axes, Dim, UncoveredError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor that the kernel reads, perhaps a view of an argument."""

    name: str
    """Local variable of the Python wrapper."""
    base: str
    """Variable of the contiguous tensor whose address the kernel gets."""
    axes: tuple[Dim, ...]
    strides: tuple[int, ...]
    """At the traced size."""
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Value:
    """One node of the program; equal only to itself.

    `op` is `load`, `const`, `iota`, `count`, `map`, `reduce` or `scan`. `text` is the C++ of a map
    with `{0}`, `{1}` for its arguments, the C++ of a constant, or the kind of a reduction.
    """

    op: str
    args: tuple["Value", ...] = ()
    dims: tuple[Dim, ...] = ()
    kind: str = "f"
    """`f` float lanes, `i` integer lanes, `b` mask."""
    text: str = ""
    needs: tuple[str, ...] = ()
    """Pieces of the C++ prelude."""
    tensor: Tensor | None = None
    over: Dim = ()
    """Axes that a reduction or scan runs along."""

    @property
    def axes(self) -> Dim:
        return tuple(a for dim in self.dims for a in dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The whole operator: outputs as values, with everything that the wrapper must do before."""

    outputs: tuple[Value, ...]
    dtypes: tuple[str, ...]
    axes: Axes
    setup: tuple[str, ...]
    """Python lines that make the tensors' variables from the arguments of `forward`."""
    inputs: tuple[str, ...]
    """Parameter names of `forward`."""
    several: bool
    """Whether `forward` returns a tuple."""

    def values(self) -> tuple[Value, ...]:
        """Every value once, arguments before their users."""
        seen: dict[int, Value] = {}
        for output in self.outputs:
            for value in _ordered(output, seen):
                seen[id(value)] = value
        return tuple(seen.values())


def _ordered(value: Value, seen: dict[int, Value]) -> Iterator[Value]:
    stack: list[tuple[Value, bool]] = [(value, False)]
    while stack:
        top, ready = stack.pop()
        if id(top) in seen:
            continue
        if ready:
            yield top
            continue
        stack.append((top, True))
        stack.extend((a, False) for a in reversed(top.args))


def broadcast(axes: Axes, values: Sequence[Value]) -> tuple[Dim, ...]:
    """The dimensions of an elementwise result: they align from the right."""
    rank = max((len(v.dims) for v in values), default=0)
    result: list[Dim] = [()] * rank
    for value in values:
        for place, dim in enumerate(value.dims, start=rank - len(value.dims)):
            result[place] = axes.unify(result[place], dim)
    leaves = axes.leaves(a for dim in result for a in dim)
    if len(set(leaves)) != len(leaves):
        raise UncoveredError("has no template that reads one axis twice")
    return tuple(result)


def const(text: str) -> Value:
    return Value(op="const", text=text)


def count(over: Dim) -> Value:
    """The number of elements along these axes, as a float."""
    return Value(op="count", over=over)
