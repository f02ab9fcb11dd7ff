"""The choices that a kernel of threads leaves open, and where its threads lie."""

from dataclasses import dataclass

from agents.offline.nest import Nest


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """How a nest is laid over blocks of threads; every combination is right."""

    threads: int = 256
    """Threads of a block."""
    across: int = 256
    """Of those, side by side along the lanes; the others take other rows, or, down columns, other
    parts of the reduced axis. A power of two."""
    vector: int = 4
    """Neighbouring floats that a thread reads at once: 4 or 1."""
    items: int = 4
    """Such reads of a thread where nothing is reduced."""
    several: int = 1
    """Accumulators of a thread along a row."""
    keep: bool = False
    """Costly values of a row stay in the output's memory between passes."""

    @property
    def beside(self) -> int:
        """Rows of a block, or parts of a column."""
        return self.threads // self.across

    @property
    def chunk(self) -> int:
        """Elements of a row that a block takes where nothing is reduced."""
        return self.across * self.vector * self.items


def grid(nest: Nest, threads: Threads) -> str:
    """Python of the number of blocks."""
    outer = [f"({g.size})" for g in nest.kept if g is not nest.lanes]
    rows = " * ".join(outer) or "1"
    if nest.mode == "row":
        return _parts(rows, threads.beside)
    if nest.mode == "column":
        return f"{rows} * {_parts(nest.lanes.size, threads.across)}"
    return f"{_parts(rows, threads.beside)} * {_parts(nest.lanes.size, threads.chunk)}"


def _parts(length: str, size: int) -> str:
    return length if size == 1 else f"(-(-({length}) // {size}))"


def place(nest: Nest, threads: Threads) -> list[str]:
    """Declares the thread's row `i_...`, its `lane`, and whether it is `live`; `c` down columns."""
    outer = [g for g in nest.kept if g is not nest.lanes]
    rows = " * ".join(g.name for g in outer) or "1"
    lanes, across = nest.lanes.name, threads.across
    split = across != threads.threads  # else the compiler would not see that lanes are neighbours
    lane, beside = (f"TID % {across}", f"TID / {across}") if split else ("TID", "0")
    out = [f"const int lane = {lane};", f"int beside = {beside};", "long rest = BLOCK;"]
    if nest.mode == "column":
        out += [
            f"const long tiles = ({lanes} + {across - 1}) / {across};",
            f"long c = rest % tiles * {across} + lane; rest /= tiles;",
            f"const int live = c < {lanes};",
            f"if (!live) c = {lanes} - 1;",
        ]
    else:
        if nest.mode == "map":
            chunk = threads.chunk
            out += [
                f"const long tiles = ({lanes} + {chunk - 1}) / {chunk};",
                f"const long begin = rest % tiles * {chunk}; rest /= tiles;",
                f"const long end = begin + {chunk} < {lanes} ? begin + {chunk} : {lanes};",
            ]
        out += [
            f"rest = rest * {threads.beside} + beside;",
            f"const int live = rest < {rows};",
            f"if (!live) rest = {rows} - 1;",
        ]
    for g in reversed(outer):
        out.append(f"const long i_{g.name} = rest % {g.name}; rest /= {g.name};")
    return out
