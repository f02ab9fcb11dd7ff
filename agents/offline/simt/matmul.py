"""Matrix products over threads: tiles in shared memory, a block of results in registers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.offline import prelude
from agents.offline.expressions import numbers, pointers
from agents.offline.module import module
from agents.offline.product import ProductNest
from agents.offline.simt.dialect import Dialect
from agents.offline.simt.expressions import Scalars
from agents.offline.template import Hints, Parameters
from agents.offline.wrapper import call
from data.records import Node

PAD = 4
"""Floats behind each row of a tile of A: columns of it fall into different banks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Results of a block (`rows` x `columns`), of a thread, and the depth of one step."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int

    @property
    def across(self) -> int:
        """Threads side by side along the columns."""
        return self.columns // self.thread_columns

    @property
    def threads(self) -> int:
        return self.rows // self.thread_rows * self.across


class SimtMatmul:
    """One operator with a single product whose result is only mapped elementwise."""

    family = "matmul threads"

    def __init__(self, graph: Sequence[Node], dialect: Dialect) -> None:
        self._whole, self._dialect = ProductNest(graph), dialect
        self.nest = self._whole.nest
        self._source(_tile({"tile": "64x64", "each": "4x4", "depth": "16"}))

    @property
    def domains(self) -> Mapping[str, tuple[str, ...]]:
        return {
            "tile": ("32x32", "64x64", "64x128", "128x64", "128x128"),
            "each": ("2x4", "4x4", "8x4", "8x8"),
            "depth": ("8", "16", "32"),
        }

    @property
    def moves(self) -> Mapping[str, Parameters]:
        return {
            "register_tile": {"tile": "128x128", "each": "8x8"},
            "tile": {"tile": "128x64", "each": "8x4"},
            "unroll": {"depth": "32"},
            "parallel_outer": {"tile": "64x64", "each": "4x4"},
        }

    def first(self, hints: Hints) -> Parameters:
        """Large tiles where the result has blocks of them for every multiprocessor."""
        results = hints.output_mib * 2**18
        big = results >= 128 * 128 * 128
        tile, each = ("128x128", "8x8") if big else ("64x64", "4x4")
        if hints.lineage == "b":
            tile, each = ("128x64", "8x4") if big else ("32x32", "2x4")
        return {"tile": tile, "each": each, "depth": "16" if hints.lineage != "c" else "8"}

    def techniques(self, parameters: Parameters) -> tuple[str, ...]:
        found = ["tile", "shared_memory", "register_tile", "coalesce", "parallel_outer"]
        if int(parameters["depth"]) > 8:
            found.append("unroll")
        if any(v.op == "map" for v in self.nest.values):
            found.append("fuse_epilogue")
        return tuple(found)

    def render(self, operator_source: str, parameters: Parameters) -> str:
        """The candidate under this schedule."""
        tile = _tile(parameters)
        n = self._whole.numbers()
        arguments = [e for _, e in self._whole.pointers] + [p.base for p in pointers(self.nest)]
        arguments += [*{**n, **numbers(self.nest)}.values()]
        high, wide = (
            f"-(-({n[k]}) // {size})"
            for k, size in zip("MN", (tile.rows, tile.columns), strict=True)
        )
        blocks = f"({n['batches']}) * ({high}) * ({wide})"
        device = f"{self._whole.pointers[0][1]}.device"
        line = (
            f"K.product(grid=({blocks},), block=({tile.threads},), args=({', '.join(arguments)},))"
        )
        wrapped = call(self.nest.program, [line], device=device)
        language = self._dialect.language
        return module(operator_source, self._source(tile), wrapped, language=language)

    # -- source -------------------------------------------------------------------------------

    def _source(self, tile: Tile) -> str:
        scalars = Scalars(self.nest, self._dialect)
        declared = [
            self._dialect.address("float", name, written=False) for name, _ in self._whole.pointers
        ]
        declared += scalars.addresses()
        named = {**self._whole.numbers(), **numbers(self.nest)}
        declared += [f"long {name}" for name in named]
        head = self._dialect.head("product", declared, tile.threads)
        body = "\n".join([head, *self._body(tile), *self._finish(tile, scalars), "}", ""])
        return self._dialect.prelude + prelude.chosen(body, "simt.h")

    def _body(self, tile: Tile) -> list[str]:
        rows, columns, depth = tile.rows, tile.columns, tile.depth
        up, wide = tile.thread_rows, tile.thread_columns
        shared = self._dialect.shared
        return [
            f"{shared} float a_tile[{depth * (rows + PAD)}];",
            f"{shared} float b_tile[{depth * columns}];",
            f"const long wide = (N + {columns - 1}) / {columns};",
            f"const long high = (M + {rows - 1}) / {rows};",
            f"const long column0 = BLOCK % wide * {columns};",
            f"const long row0 = BLOCK / wide % high * {rows};",
            "const long batch = BLOCK / wide / high;",
            f"const int x = TID % {tile.across}, y = TID / {tile.across};",
            "const GLOBAL float* a = A + x_a + batch * sab;",
            "const GLOBAL float* b = B + x_b + batch * sbb;",
            f"float acc[{up}][{wide}];",
            "#pragma unroll", f"for (int i = 0; i < {up}; ++i)",
            "#pragma unroll", f"for (int j = 0; j < {wide}; ++j) acc[i][j] = 0.0f;",
            f"for (long k0 = 0; k0 < K; k0 += {depth}) {{",
            *self._fill("a", rows, depth, tile.threads),
            *self._fill("b", columns, depth, tile.threads),
            "SYNC;",
            "#pragma unroll", f"for (int k = 0; k < {depth}; ++k) {{",
            f"float p[{up}], q[{wide}];",
            "#pragma unroll", f"for (int i = 0; i < {up}; ++i)",
            f"p[i] = a_tile[k * {rows + PAD} + y * {up} + i];",
            "#pragma unroll", f"for (int j = 0; j < {wide}; ++j)",
            f"q[j] = b_tile[k * {columns} + x + j * {tile.across}];",
            "#pragma unroll", f"for (int i = 0; i < {up}; ++i)",
            "#pragma unroll", f"for (int j = 0; j < {wide}; ++j) acc[i][j] += p[i] * q[j];",
            "}", "SYNC;", "}",
        ]  # fmt: skip

    def _fill(self, letter: str, width: int, depth: int, threads: int) -> list[str]:
        """A tile of one operand; neighbouring threads read along the axis that is adjacent."""
        along, across = ("sam", "san") if letter == "a" else ("sbn", "sbm")
        length, begin, pitch = ("M", "row0", width + PAD) if letter == "a" else (
            "N", "column0", width)  # fmt: skip
        put = (
            f"{letter}_tile[k * {pitch} + r] = at < {length} && k0 + k < K"
            f" ? {letter}[at * {along} + (k0 + k) * {across}] : 0.0f;"
        )
        return [
            f"if ({across} == 1) for (int t = TID; t < {width * depth}; t += {threads}) {{",
            f"const int k = t % {depth}, r = t / {depth};",
            f"const long at = {begin} + r;", put,
            f"}} else for (int t = TID; t < {width * depth}; t += {threads}) {{",
            f"const int k = t / {width}, r = t % {width};",
            f"const long at = {begin} + r;", put, "}",
        ]  # fmt: skip

    def _finish(self, tile: Tile, scalars: Scalars) -> list[str]:
        """The epilogue on one result, and its store."""
        out = [
            "#pragma unroll", f"for (int i = 0; i < {tile.thread_rows}; ++i) {{",
            f"const long row = row0 + y * {tile.thread_rows} + i;",
            "if (row < M) {",
            *self._whole.place("row"), *scalars.offsets(),
            "#pragma unroll", f"for (int j = 0; j < {tile.thread_columns}; ++j) {{",
            f"const long c = column0 + x + j * {tile.across};",
            "if (c < N) {",
        ]  # fmt: skip
        for value in self.nest.values:
            if value.op == "product":
                out.append(f"const V {scalars.names[id(value)]} = acc[i][j];")
            elif value.op in ("load", "map", "iota"):
                out.append(scalars.define(value))
        for place, value in zip(self.nest.stores, self.nest.outputs, strict=True):
            out.append(scalars.store(place, scalars.ref(value)))
        return [*out, "}", "}", "}", "}"]


def _tile(parameters: Parameters) -> Tile:
    """Each thread takes more rows where a block would have more than 512 threads."""
    rows, columns = map(int, parameters["tile"].split("x"))
    up, wide = map(int, parameters["each"].split("x"))
    while rows * columns > 512 * up * wide:
        up *= 2
    return Tile(
        rows=rows,
        columns=columns,
        depth=int(parameters["depth"]),
        thread_rows=up,
        thread_columns=wide,
    )
