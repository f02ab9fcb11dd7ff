"""What is done with the results of a product that a thread holds."""

from dataclasses import dataclass

from agents.offline.product import ProductNest
from agents.offline.simt.expressions import Scalars


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


def finish(whole: ProductNest, scalars: Scalars, tile: Tile, *, unrolled: bool) -> list[str]:
    """The epilogue on each of `acc`, and its store."""
    nest, again = whole.nest, ["#pragma unroll"] if unrolled else []
    out = [
        *again, f"for (int i = 0; i < {tile.thread_rows}; ++i) {{",
        f"const long row = row0 + y * {tile.thread_rows} + i;",
        "if (row < M) {",
        *whole.place("row"), *scalars.offsets(),
        *again, f"for (int j = 0; j < {tile.thread_columns}; ++j) {{",
        f"const long c = column0 + x + j * {tile.across};",
        "if (c < N) {",
    ]  # fmt: skip
    for value in nest.values:
        if value.op == "product":
            out.append(f"const V {scalars.names[id(value)]} = acc[i][j];")
        elif value.op in ("load", "map", "iota"):
            out.append(scalars.define(value))
    for place, value in zip(nest.stores, nest.outputs, strict=True):
        out.append(scalars.store(place, scalars.ref(value)))
    return [*out, "}", "}", "}", "}"]
