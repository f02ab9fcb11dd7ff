"""Matrix products over threads: tiles in shared memory, a block of results in registers."""

from collections.abc import Mapping, Sequence

from agents.offline import prelude
from agents.offline.expressions import numbers, pointers
from agents.offline.module import module
from agents.offline.product import ProductNest
from agents.offline.simt.dialect import Dialect
from agents.offline.simt.epilogue import Tile, finish
from agents.offline.simt.expressions import Scalars
from agents.offline.simt.panels import DEPTH, LANES, PACKED, Panels, body, pack
from agents.offline.template import Hints, Parameters
from agents.offline.wrapper import call
from data.records import Node

PAD = 4
"""Floats behind each row of a tile of A: columns of it fall into different banks."""
TILES = {
    "tile": ("32x32", "64x64", "64x128", "128x64", "128x128"),
    "each": ("2x4", "4x4", "8x4", "8x8"),
    "depth": ("8", "16", "32"),
}
PANELS = {
    "form": ("tiles", "panels"),
    "panel": ("4x2", "6x2", "8x2", "12x2", "6x4"),
    "block": ("48", "96", "192", "480"),
}
"""Where a sub-group may be a vector; multiples of the panels' rows."""


class SimtMatmul:
    """One operator with a single product whose result is only mapped elementwise."""

    family = "matmul threads"

    def __init__(self, graph: Sequence[Node], dialect: Dialect) -> None:
        self._whole, self._dialect = ProductNest(graph), dialect
        self.nest = self._whole.nest
        self._source(_tile({"tile": "64x64", "each": "4x4", "depth": "16"}))

    @property
    def domains(self) -> Mapping[str, tuple[str, ...]]:
        return {**PANELS, **TILES} if self._dialect.processor else TILES

    @property
    def moves(self) -> Mapping[str, Parameters]:
        found = {
            "register_tile": {"tile": "128x128", "each": "8x8"},
            "tile": {"tile": "128x64", "each": "8x4"},
            "unroll": {"depth": "32"},
            "parallel_outer": {"tile": "64x64", "each": "4x4"},
        }
        if self._dialect.processor:
            found["register_tile"] |= {"panel": "12x2"}
            found["unroll"] |= {"panel": "6x4"}
            found["parallel_outer"] |= {"block": "48"}
            found["pack"] = {"form": "panels"}
            found["cache_block"] = {"form": "panels", "block": "96"}
        return found

    def first(self, hints: Hints) -> Parameters:
        """Large tiles where the result has blocks of them for every multiprocessor."""
        results = hints.output_mib * 2**18
        big = results >= 128 * 128 * 128
        tile, each = ("128x128", "8x8") if big else ("64x64", "4x4")
        if hints.lineage == "b":
            tile, each = ("128x64", "8x4") if big else ("32x32", "2x4")
        found = {"tile": tile, "each": each, "depth": "16" if hints.lineage != "c" else "8"}
        if not self._dialect.processor:
            return found
        panel = {"a": "12x2", "b": "6x4"}.get(hints.lineage, "8x2")
        block = {"a": "96", "b": "192"}.get(hints.lineage, "48")
        form = "panels" if hints.processor else "tiles"
        return {"form": form, "panel": panel, "block": block, **found}

    def techniques(self, parameters: Parameters) -> tuple[str, ...]:
        if _panels(parameters) is not None:
            found = ["vectorize", "register_tile", "cache_block", "pack", "parallel_outer"]
            several = parameters["panel"] in ("12x2", "6x4")
        else:
            found = ["tile", "shared_memory", "register_tile", "coalesce", "parallel_outer"]
            several = int(parameters["depth"]) > 8
        if several:
            found.append("unroll")
        if any(v.op == "map" for v in self.nest.values):
            found.append("fuse_epilogue")
        return tuple(found)

    def render(self, operator_source: str, parameters: Parameters) -> str:
        """The candidate under this schedule."""
        panels, tile = _panels(parameters), _tile(parameters)
        lines = self._tiled(tile) if panels is None else self._packed(panels)
        source = self._source(tile) if panels is None else self._panelled(panels)
        device = f"{self._whole.pointers[0][1]}.device"
        wrapped = call(self.nest.program, lines, device=device)
        return module(operator_source, source, wrapped, language=self._dialect.language)

    # -- calls --------------------------------------------------------------------------------

    def _tiled(self, tile: Tile) -> list[str]:
        n = self._whole.numbers()
        blocks = f"({n['batches']}) * {_parts(n['M'], tile.rows)} * {_parts(n['N'], tile.columns)}"
        return [self._product(blocks, tile.threads, self._whole.pointers[1][1])]

    def _packed(self, panels: Panels) -> list[str]:
        n, b = self._whole.numbers(), self._whole.pointers[1][1]
        count = f"({n['batches']}) * {_parts(n['N'], panels.width)}"
        arguments = ", ".join((b, "packed", *(n[name] for name in PACKED)))
        groups = f"{count} * {_parts(n['K'], DEPTH)}"
        return [
            f"packed = torch.empty({count} * ({n['K']}) * {panels.width}, device={b}.device)",
            f"K.pack(grid=({groups},), block=({LANES},), args=({arguments},))",
            self._product(f"{count} * {_parts(n['M'], panels.block)}", LANES, "packed"),
        ]

    def _product(self, blocks: str, threads: int, b: str) -> str:
        arguments = [self._whole.pointers[0][1], b, *(p.base for p in pointers(self.nest))]
        arguments += {**self._whole.numbers(), **numbers(self.nest)}.values()
        return f"K.product(grid=({blocks},), block=({threads},), args=({', '.join(arguments)},))"

    # -- source -------------------------------------------------------------------------------

    def _source(self, tile: Tile) -> str:
        lines = [*self._body(tile), *self._finish(tile, unrolled=True), "}", ""]
        return self._text([self._head(tile.threads), *lines])

    def _panelled(self, panels: Panels) -> str:
        lines = [*body(panels), *self._finish(panels.tile, unrolled=False), "}", "}", ""]
        return self._text([*pack(self._dialect, panels), self._head(LANES), *lines])

    def _text(self, lines: Sequence[str]) -> str:
        return self._dialect.prelude + prelude.chosen("\n".join(lines), "simt.h")

    def _finish(self, tile: Tile, *, unrolled: bool) -> list[str]:
        scalars = Scalars(self.nest, self._dialect)
        return finish(self._whole, scalars, tile, unrolled=unrolled)

    def _head(self, threads: int) -> str:
        declared = [
            self._dialect.address("float", name, written=False) for name, _ in self._whole.pointers
        ]
        declared += Scalars(self.nest, self._dialect).addresses()
        named = {**self._whole.numbers(), **numbers(self.nest)}
        declared += [f"long {name}" for name in named]
        return self._dialect.head("product", declared, threads)

    def _body(self, tile: Tile) -> list[str]:
        rows, columns, depth = tile.rows, tile.columns, tile.depth
        up, wide = tile.thread_rows, tile.thread_columns
        array = self._dialect.array
        return [
            array("float", "a_tile", depth * (rows + PAD)),
            array("float", "b_tile", depth * columns),
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


def _panels(parameters: Parameters) -> Panels | None:
    """The panels of a schedule; None where it is one of tiles."""
    if parameters.get("form") != "panels":
        return None
    rows, vectors = map(int, parameters["panel"].split("x"))
    return Panels(rows=rows, vectors=vectors, block=int(parameters["block"]))


def _parts(length: str, size: int) -> str:
    return f"(-(-({length}) // {size}))"
