"""The family of matrix products with an elementwise epilogue, packed and register-tiled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from agents.offline import address, prelude
from agents.offline import expressions as cpp
from agents.offline.address import Lanes
from agents.offline.axes import UncoveredError
from agents.offline.lower import lower
from agents.offline.lowering import Lowering, as_float
from agents.offline.module import module
from agents.offline.nest import Nest, plan
from agents.offline.program import Program, Value
from agents.offline.rule import Arguments
from agents.offline.template import Hints, Parameters
from agents.offline.wrapper import call
from data.records import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """The operands; `b` is (batch,) K, N whatever its layout."""

    a: Value
    b: Value
    batched: bool


class Matmul:
    """One operator with a single product whose result is only mapped elementwise."""

    family = "matmul"

    def __init__(self, graph: Sequence[Node]) -> None:
        self._products: list[Product] = []
        names = ("matmul", "mm", "bmm", "linear", "addmm")
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
        for refuses in (self._body, self._operands):
            refuses()

    def _lanes(self, program: Program) -> frozenset[int]:
        return frozenset(program.axes.leaves(self._product.b.dims[-1]))

    def _rule(self, state: Lowering, node: Node, a: Arguments) -> Value:
        """The product as a value of its own; bias is added behind it."""
        first = 1 if ".addmm." in node.op else 0
        x, y = a.tensor(first), a.tensor(first + 1)
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

    # -- search -------------------------------------------------------------------------------

    @property
    def domains(self) -> Mapping[str, tuple[str, ...]]:
        return {
            "width": ("8", "16"),
            "tile": ("4x2", "6x2", "8x2", "12x2", "6x4"),
            "block": ("48", "96", "192", "480"),
        }

    @property
    def moves(self) -> Mapping[str, Parameters]:
        return {
            "vectorize": {"width": "16"},
            "register_tile": {"tile": "12x2"},
            "unroll": {"tile": "6x4"},
            "cache_block": {"block": "96"},
            "parallel_outer": {"block": "48"},
        }

    def first(self, hints: Hints) -> Parameters:
        wide = "512" in hints.simd or not hints.simd
        tile = {"a": "12x2", "b": "6x4"}.get(hints.lineage, "8x2") if wide else "6x2"
        block = {"a": "96", "b": "192"}.get(hints.lineage, "48")
        return {"width": "16" if wide else "8", "tile": tile, "block": block}

    def techniques(self, parameters: Parameters) -> tuple[str, ...]:
        """The tags; the widest tile keeps enough products in flight to count as unrolled."""
        found = ["vectorize", "register_tile", "cache_block", "pack", "parallel_outer"]
        if parameters["tile"] in ("12x2", "6x4"):
            found.append("unroll")
        if any(v.op == "map" for v in self.nest.values):
            found.append("fuse_epilogue")
        return tuple(found)

    # -- source -------------------------------------------------------------------------------

    def render(self, operator_source: str, parameters: Parameters) -> str:
        """The candidate under this schedule."""
        rows, vectors = parameters["tile"].split("x")
        text = (files("agents.offline") / "templates" / "matmul.hpp").read_text(encoding="utf-8")
        for name, value in (
            ("ROWS", rows), ("VECTORS", vectors), ("BLOCK", parameters["block"])
        ):  # fmt: skip
            text = text.replace(f"@{name}@", value)
        arguments = [*self._operands(), *cpp.parameters(self.nest)]
        head = f'extern "C" void product({", ".join(d for d, _ in arguments)}) {{'
        kernel = prelude.text(
            "\n".join([text, head, *self._body(), "}", ""]), int(parameters["width"])
        )
        expressions = [e for _, e in arguments]
        return module(operator_source, kernel, call(self.nest.program, "product", expressions))

    def _operands(self) -> list[tuple[str, str]]:
        """Parameters of the product itself: declaration and Python expression."""
        a, b = self._product.a, self._product.b
        assert a.tensor is not None
        assert b.tensor is not None
        axes = self._program.axes
        rows = [d for dim in a.dims[:-1] for d in dim]
        batch = axes.size(a.dims[0]) if self._product.batched else "1"
        if self._product.batched:
            rows = list(a.dims[1])
        found = [
            ("const float* __restrict__ A", _pointer(a)),
            ("const float* __restrict__ B", _pointer(b)),
            ("long batches", batch),
            ("long M", axes.size(rows)),
            ("long N", axes.size(b.dims[-1])),
            ("long K", axes.size(a.dims[-1])),
        ]
        for letter, value, walk in (("a", a, self._strides[0]), ("b", b, self._strides[1])):
            assert value.tensor is not None
            moved = f"{value.tensor.name}.storage_offset() - {value.tensor.base}.storage_offset()"
            found.append(
                (f"long x_{letter}", "0" if value.tensor.name == value.tensor.base else moved)
            )
            found += [
                (f"long s{letter}{k}", expression)
                for k, expression in zip("bmn", walk, strict=True)
            ]
        return found

    def _body(self) -> list[str]:
        return [
            "A += x_a; B += x_b;",
            "const long panels = (N + NR - 1) / NR, blocks = (M + MC - 1) / MC;",
            "float* packed = static_cast<float*>(",
            "    std::aligned_alloc(64, (batches * panels * K * NR * 4 + 64) / 64 * 64));",
            "#pragma omp parallel if (batches * M * N * K > 65536)",
            "{",
            "#pragma omp for schedule(static)",
            "for (long q = 0; q < batches * panels; ++q) {",
            "const long batch = q / panels, j = q % panels * NR;",
            "const float* from = B + batch * sbb + j * sbn;",
            "float* to = packed + q * K * NR;",
            "if (sbm == 1) pack_transposed(from, sbn, K, N - j, to);",
            "else pack(from, sbm, sbn, K, N - j, to);",
            "}",
            "#pragma omp for schedule(dynamic)",
            "for (long q = 0; q < batches * blocks; ++q) {",
            "const long batch = q / blocks, i0 = q % blocks * MC;",
            "const long i1 = i0 + MC < M ? i0 + MC : M;",
            "for (long panel = 0; panel < panels; ++panel) {",
            "const float* b = packed + (batch * panels + panel) * K * NR;",
            "const float* a = A + batch * sab;",
            "long i = i0;",
            "auto finish = [&](V product, int r, int v) __attribute__((always_inline)) {",
            "const long c = panel * NR + v * W, left = N - c;",
            "if (left <= 0) return;",
            *self._finish(),
            "};",
            "for (; i + MR <= i1; i += MR) tile<MR>(a + i * sam, sam, san, b, K, finish);",
            "for (; i + 2 <= i1; i += 2) tile<2>(a + i * sam, sam, san, b, K, finish);",
            "for (; i < i1; ++i) tile<1>(a + i * sam, sam, san, b, K, finish);",
            "}", "}", "}",
            "std::free(packed);",
        ]  # fmt: skip

    def _finish(self) -> list[str]:
        """The epilogue on one vector of the product, and its store."""
        kernel = cpp.Expressions(self.nest)
        outer = self.nest.groups[:-1]
        row = "i + r" if len(outer) == 2 or not self._product.batched else "batch * M + i + r"
        out = [f"const long i_{outer[-1].name} = {row};"]
        if len(outer) == 2:
            out.insert(0, f"const long i_{outer[0].name} = batch;")
        out += [
            f"const long o_{place.variable} = {address.offset(self.nest, place)};"
            for place in cpp.places(self.nest)
        ]
        lanes = Lanes(left="left")
        for value in self.nest.values:
            name = kernel.names[id(value)]
            if value.op == "product":
                out.append(f"const V {name} = product;")
            elif value.op in ("load", "map", "iota"):
                text = kernel.expression(value, lanes)
                out.append(f"const {cpp.lane_type(value)} {name} = {text};")
        for store, value in zip(self.nest.stores, self.nest.outputs, strict=True):
            name = kernel.names[id(value)]
            out.append(address.store(self.nest, store, lanes, name, stream=False))
        return out


def _swapped(value: Value) -> Value:
    return replace(value, dims=(*value.dims[:-2], value.dims[-1], value.dims[-2]))


def _pointer(value: Value) -> str:
    assert value.tensor is not None
    return value.tensor.base
