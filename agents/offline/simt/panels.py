"""Matrix products where a sub-group is one vector: packed panels of B, results in registers.

A group is one sub-group, so that nothing waits: on a processor a barrier splits a kernel in two
loops, and local memory is no nearer than a cache.
"""

from dataclasses import dataclass

from agents.offline.simt.dialect import Dialect
from agents.offline.simt.epilogue import Tile

LANES = 16
"""Threads of a group."""
DEPTH = 64
"""Rows of B that a group packs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Each group takes `block` rows of one panel, `rows` x `vectors` vectors of results at once."""

    rows: int
    vectors: int
    block: int

    @property
    def width(self) -> int:
        return LANES * self.vectors

    @property
    def tile(self) -> Tile:
        """What the epilogue runs over."""
        return Tile(
            rows=self.rows,
            columns=self.width,
            depth=1,
            thread_rows=self.rows,
            thread_columns=self.vectors,
        )


def pack(dialect: Dialect, panels: Panels) -> list[str]:
    """The kernel that writes B panel by panel, a row of it for each k; zeros behind the end."""
    wide = panels.width
    parameters = [
        dialect.address("float", "B", written=False),
        dialect.address("float", "packed", written=True),
        *(f"long {name}" for name in PACKED),
    ]
    return [
        dialect.head("pack", parameters, LANES),
        f"const long panels = (N + {wide - 1}) / {wide}, parts = (K + {DEPTH - 1}) / {DEPTH};",
        "const long part = BLOCK % parts, panel = BLOCK / parts % panels;",
        "const long batch = BLOCK / parts / panels;",
        f"const long k0 = part * {DEPTH}, k1 = k0 + {DEPTH} < K ? k0 + {DEPTH} : K;",
        "const GLOBAL float* b = B + x_b + batch * sbb;",
        f"GLOBAL float* to = packed + (batch * panels + panel) * K * {wide} + TID;",
        *(
            line
            for j in range(panels.vectors)
            for line in (
                f"const long n{j} = panel * {wide} + TID + {j * LANES};",
                f"const GLOBAL float* b{j} = b + (n{j} < N ? n{j} : N - 1) * sbn;",
            )
        ),
        "for (long k = k0; k < k1; ++k) {",
        *(
            f"to[k * {wide} + {j * LANES}] = n{j} < N ? b{j}[k * sbm] : 0.0f;"
            for j in range(panels.vectors)
        ),
        "}", "}",
    ]  # fmt: skip


PACKED = ("N", "K", "x_b", "sbb", "sbm", "sbn")
"""Numbers that `pack` takes."""


def body(panels: Panels) -> list[str]:
    """The product: `acc` holds the results of thread `x` from `row0` and `column0` on."""
    rows, vectors, wide = range(panels.rows), range(panels.vectors), panels.width
    return [
        f"const long panels = (N + {wide - 1}) / {wide};",
        f"const long blocks = (M + {panels.block - 1}) / {panels.block};",
        "const long panel = BLOCK % panels, block = BLOCK / panels % blocks;",
        "const long batch = BLOCK / panels / blocks;",
        "const int x = TID, y = 0;",
        f"const long column0 = panel * {wide};",
        "const GLOBAL float* a = A + x_a + batch * sab;",
        f"const GLOBAL float* b = B + (batch * panels + panel) * K * {wide} + TID;",
        f"const long last = (block + 1) * {panels.block} < M ? (block + 1) * {panels.block} : M;",
        f"for (long row0 = block * {panels.block}; row0 < last; row0 += {panels.rows}) {{",
        *(
            f"const GLOBAL float* a{i} = a + (row0 + {i} < M ? row0 + {i} : M - 1) * sam;"
            for i in rows
        ),
        *(f"float {', '.join(f'r{i}_{j} = 0.0f' for j in vectors)};" for i in rows),
        "for (long k = 0; k < K; ++k) {",
        *(f"const float q{j} = b[k * {wide} + {j * LANES}];" for j in vectors),
        *(
            f"{{ const float p = a{i}[k * san]; "
            + " ".join(f"r{i}_{j} += p * q{j};" for j in vectors)
            + " }"
            for i in rows
        ),
        "}",
        f"float acc[{panels.rows}][{panels.vectors}];",
        *(f"acc[{i}][{j}] = r{i}_{j};" for i in rows for j in vectors),
    ]
