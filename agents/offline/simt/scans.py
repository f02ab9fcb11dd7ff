"""Running sums and products: over the threads of a row, and down a column."""

from agents.offline.program import Value


def along_row(scan: Value, name: str, x: str, across: int) -> str:
    """A block's width at a time, in shared memory; `c_...` is what came before."""
    sign, first = _sign(scan), one(scan)
    return "\n".join([
        f"V {name} = on ? {x} : {first};",
        f"s0_V[TID] = {name}; SYNC;",
        f"for (int d = 1; d < {across}; d <<= 1) {{",
        f"const V o = lane >= d ? s0_V[TID - d] : {first}; SYNC;",
        f"{name} = {name} {sign} o; s0_V[TID] = {name}; SYNC;", "}",
        f"const V l_{name} = s0_V[TID - lane + {across - 1}]; SYNC;",
        f"{name} = {name} {sign} c_{name}; c_{name} = c_{name} {sign} l_{name};",
    ])  # fmt: skip


def down_column(scan: Value, name: str, x: str) -> str:
    """One element after the other."""
    return f"c_{name} = c_{name} {_sign(scan)} {x}; const V {name} = c_{name};"


def one(scan: Value) -> str:
    """What a scan begins with."""
    return "1.0f" if scan.text.endswith("prod") else "0.0f"


def _sign(scan: Value) -> str:
    return "*" if scan.text.endswith("prod") else "+"
