"""A single matrix product in a program: its operands, and the nest of what is done behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.offline.axes import UncoveredError
from agents.offline.lower import lower
from agents.offline.lowering import Lowering, as_float
from agents.offline.nest import Nest, plan
from agents.offline.program import Program, Value
from agents.offline.rule import Arguments
from data.records import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """The operands; `b` is (batch,) K, N whatever its layout."""

    a: Value
    b: Value
    batched: bool


class ProductNest:
    """One operator with a single product whose result is only mapped elementwise."""

    def __init__(self, graph: Sequence[Node]) -> None:
        self._products: list[Product] = []
        names = ("matmul", "mm", "bmm", "linear", "addmm", "einsum")
        self._program = lower(graph, dict.fromkeys(names, self._rule))
        if len(self._products) != 1:
            raise UncoveredError("has no template for several matrix products")
        self._product = self._products[0]
        self.nest: Nest = plan(self._program, apart=self._lanes(self._program))
        outer = len(self.nest.groups) - 1
        if self.nest.mode != "map" or any(map(self.nest.total, self.nest.values)):
            raise UncoveredError("has no template for a reduction behind a matrix product")
        if not 1 <= outer <= (2 if self._product.batched else 1):
            raise UncoveredError("has no template for this layout of a matrix product")
        self._strides = (self._walk(self._product.a), self._walk(self._product.b))
        self.batched = self._product.batched

    def _lanes(self, program: Program) -> frozenset[int]:
        return frozenset(program.axes.leaves(self._product.b.dims[-1]))

    def _rule(self, state: Lowering, node: Node, a: Arguments) -> Value:
        """The product as a value of its own; bias is added behind it."""
        first = 1 if ".addmm." in node.op else 0
        x, y = _contracted(a) if ".einsum." in node.op else (a.tensor(first), a.tensor(first + 1))
        linear = ".linear." in node.op
        if x.op != "load" or y.op != "load" or x.kind != "f" or y.kind != "f":
            raise UncoveredError("has no template for a product of computed values")
        if linear:
            y = _swapped(y)
        batched = len(y.dims) == 3
        if len(y.dims) not in (2, 3) or len(x.dims) < len(y.dims):
            raise UncoveredError("has no template for a product of these ranks")
        a.refuse(batched and len(x.dims) != 3, "these ranks")
        state.axes.unify(x.dims[-1], y.dims[-2])
        if batched:
            state.axes.unify(x.dims[0], y.dims[0])
        leaves = state.axes.leaves(d for dim in (*x.dims[:-1], y.dims[-1]) for d in dim)
        a.refuse(len(set(leaves)) != len(leaves), "one tensor on both sides")
        self._products.append(Product(a=x, b=y, batched=batched))
        result = Value(op="product", dims=(*x.dims[:-1], y.dims[-1]))
        bias = a.optional(2, "bias") if linear else (a.tensor(0) if first else None)
        return result if bias is None else state.add(result, as_float(bias))

    def _walk(self, value: Value) -> tuple[str, str, str]:
        """Strides over batch, rows and columns as Python expressions."""
        assert value.tensor is not None
        found: list[str] = []
        axes, name = self._program.axes, value.tensor.name
        strides = {
            leaf: step
            for d, (dim, n) in enumerate(zip(value.tensor.axes, value.tensor.strides, strict=True))
            for axis in dim
            for leaf, step in axes.strides(axis, f"{name}.stride({d})", n).items()
        }
        for dim in value.dims:
            leaves = axes.leaves(dim)
            found.append(strides[leaves[-1]][0] if leaves else "0")
        batch = found[0] if self._product.batched else "0"
        return batch, found[-2], found[-1]

    @property
    def pointers(self) -> tuple[tuple[str, str], ...]:
        """The operands: name in the kernel and Python expression."""
        return (("A", _pointer(self._product.a)), ("B", _pointer(self._product.b)))

    def numbers(self) -> dict[str, str]:
        """Lengths, offsets and strides of the operands: name in the kernel, Python expression."""
        a, b = self._product.a, self._product.b
        axes = self._program.axes
        rows = [d for dim in a.dims[:-1] for d in dim]
        if self.batched:
            rows = list(a.dims[1])
        found = {
            "batches": axes.size(a.dims[0]) if self.batched else "1",
            "M": axes.size(rows),
            "N": axes.size(b.dims[-1]),
            "K": axes.size(a.dims[-1]),
        }
        for letter, value, walk in (("a", a, self._strides[0]), ("b", b, self._strides[1])):
            assert value.tensor is not None
            moved = f"{value.tensor.name}.storage_offset() - {value.tensor.base}.storage_offset()"
            found[f"x_{letter}"] = "0" if value.tensor.name == value.tensor.base else moved
            found |= {f"s{letter}{k}": e for k, e in zip("bmn", walk, strict=True)}
        return found

    def place(self, row: str) -> list[str]:
        """Declares the indices outside the lanes for this row of `batch`."""
        outer = self.nest.groups[:-1]
        whole = row if len(outer) == 2 or not self.batched else f"batch * M + {row}"
        found = [f"const long i_{outer[-1].name} = {whole};"]
        return ([f"const long i_{outer[0].name} = batch;"] if len(outer) == 2 else []) + found


def _contracted(a: Arguments) -> tuple[Value, Value]:
    """The operands of an `einsum` that is a product with a matrix, such as `bijl,lk->bijk`."""
    equation = str(a.plain(0, "equation")).replace(" ", "")
    inputs, _, result = equation.partition("->")
    left, _, right = inputs.partition(",")
    plain = len(right) == 2 and left[-1:] == right[0] and result == left[:-1] + right[1]
    a.refuse(not plain or len(set(left + right)) != len(left) + 1, f"the equation {equation}")
    x, y = a.listed(1)
    return x, y


def _swapped(value: Value) -> Value:
    return replace(value, dims=(*value.dims[:-2], value.dims[-1], value.dims[-2]))


def _pointer(value: Value) -> str:
    assert value.tensor is not None
    return value.tensor.base
