"""rocprofv3's CSV as values: a kernel trace, or one row a counter and launch.

Columns changed between versions, so they are found by name. ROCm 7 writes a database unless CSV is
asked for.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from data.errors import MachineError
from data.metrics import METRICS
from data.records import Metric, Profile
from targets import diagnostics

OPTIONS = ("--kernel-trace", "--output-format", "csv")
NAME = "Kernel_Name"
COLUMNS = {
    "VGPR_Count": "registers_per_thread",
    "SGPR_Count": "scalar_registers",
    "LDS_Block_Size": "shared_bytes",
    "Group_Segment_Size": "shared_bytes",
    "Scratch_Size": "stack_bytes",
    "Private_Segment_Size": "stack_bytes",
    "Workgroup_Size": "group_threads",
}
"""By column: the word for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel of the output."""

    kernel: str
    metrics: tuple[Metric, ...]
    counters: dict[str, float]
    """By the vendor's names."""

    def value(self, name: str) -> float | None:
        return next((m.value for m in self.metrics if m.name == name), None)


def command(program: Sequence[str]) -> tuple[str, ...]:
    return ("rocprofv3", *OPTIONS, "--", *program)


def launches(text: str) -> tuple[Launch, ...]:
    """All launches of a table of launches or of counters. MachineError when it holds none."""
    lines, cut = diagnostics.whole_lines(text.replace("\0", ""))
    table = csv.DictReader(io.StringIO(lines))
    try:
        rows = list(table)
    except csv.Error as error:
        raise MachineError(f"rocprofv3's table cannot be read: {error}") from None
    if NAME not in (table.fieldnames or ()):
        raise MachineError(
            f"no table of rocprofv3 with a column {NAME}, expected its trace of kernels or its"
            f" counters as CSV with commas; {diagnostics.opening(text)}"
        )
    whole = [r for r in rows if r.get(NAME) and None not in r.values()]
    if not whole:
        why = "it is cut off" if cut else "was anything launched?"
        raise MachineError(f"rocprofv3's table holds no whole row: {why}")
    grouped: dict[str, list[dict[str, str]]] = {}
    for number, row in enumerate(whole):
        key = row.get("Dispatch_Id") or row.get("Correlation_Id") or str(number)
        grouped.setdefault(key, []).append(row)
    return tuple(_launch(same) for same in grouped.values())


def profile(text: str) -> Profile:
    """Of the launch that took longest, the first one where no times are known."""
    found = launches(text)
    chosen = max(found, key=lambda launch: launch.value("kernel_us") or 0.0)
    counters = [f"{chosen.kernel}: {n} {v:g}" for n, v in chosen.counters.items()]
    remarks = (f"kernel {chosen.kernel}", *counters, *diagnostics.whole_lines(text)[1])
    return Profile(metrics=chosen.metrics, remarks=remarks)


def _launch(rows: Sequence[dict[str, str]]) -> Launch:
    first = rows[0]
    values = {name: (v, source) for name, v, source in _values(first)}
    counters = {
        r["Counter_Name"]: value
        for r in rows
        if r.get("Counter_Name") and (value := _number(r.get("Counter_Value"))) is not None
    }
    metrics = tuple(
        Metric(name=name, value=value, unit=METRICS[name].unit, source=f"rocprofv3: {source}")
        for name, (value, source) in values.items()
    )
    return Launch(kernel=first[NAME], metrics=metrics, counters=counters)


def _values(row: dict[str, str]) -> Iterator[tuple[str, float, str]]:
    """Name, value and column of what a row says of its launch."""
    start, end = (_number(row.get(f"{w}_Timestamp")) for w in ("Start", "End"))
    if start is not None and end is not None and end >= start:
        yield "kernel_us", (end - start) / 1e3, "End_Timestamp - Start_Timestamp"
    for column, name in COLUMNS.items():
        if (value := _number(row.get(column))) is not None:
            yield name, value, column
    threads = _product(row, "Workgroup_Size")
    total = _product(row, "Grid_Size")
    if threads and total:
        yield "group_threads", threads, "Workgroup_Size"
        yield "groups", total / threads, "Grid_Size / Workgroup_Size"


def _product(row: dict[str, str], column: str) -> float | None:
    """Of the three axes, or the column that holds it."""
    if (whole := _number(row.get(column))) is not None:
        return whole
    axes = [_number(row.get(f"{column}_{axis}")) for axis in "XYZ"]
    known = [a for a in axes if a is not None]
    return known[0] * known[1] * known[2] if len(known) == len(axes) else None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
