"""The summary that Intel's unitrace prints, as values: timings, properties, hardware counters."""

import re
from collections.abc import Iterator, Sequence

from data.errors import MachineError
from data.metrics import METRICS
from data.records import Metric, Profile
from targets import diagnostics

OPTIONS = ("--device-timing", "--kernel-submission", "--metric-query", "--group", "ComputeBasic")
KERNELS = 5
"""Of the summary that are named, the longest first."""
_SECTION = re.compile(r"^=+ (?P<name>[^=]+?) =+$")
_LAUNCH = re.compile(
    r"^(?P<name>.+)\[SIMD(?P<width>\d+) \{(?P<groups>[\d; ]+)\} \{(?P<block>[\d; ]+)\}\]$"
)
"""Sub-group width, number of groups, size of a group."""
_BYTES = ("GPU_MEMORY_BYTE_READ[bytes]", "GPU_MEMORY_BYTE_WRITE[bytes]")
_COUNTERS = {"achieved_occupancy": "XVE_THREADS_OCCUPANCY_ALL[%]", "unit_share": "XVE_ACTIVE[%]"}
_PROPERTIES = {
    "shared_bytes": "SLM Per Work Group",
    "stack_bytes": "Private Memory Per Thread",
    "spill_thread_bytes": "Spill Memory Per Thread",
}
_HEAD = re.compile(r"^ *Kernel, *[A-Z]")
_ROW = re.compile(r"^ *(?P<name>\S.*\])(?:,| {2,})(?P<rest>.*)$")
"""A name may hold commas and ends with a bracket."""
_CELL = re.compile(r", *| {2,}")
"""Rows of the properties have spaces where their head has commas."""
Row = dict[str, str]


def command(program: Sequence[str]) -> tuple[str, ...]:
    return ("unitrace", *OPTIONS, *program)


def profile(text: str) -> Profile:
    """Of the kernel that took longest; copies are named. MachineError when nothing can be read."""
    timed = [r for r in _rows(text, "L0 Backend", "CL GPU Backend") if "Time (ns)" in r]
    launched = [r for r in timed if _LAUNCH.match(r["Kernel"])]
    if not launched:
        raise MachineError(
            "unitrace's output names no kernel; expected its Device Timing Summary with rows"
            " such as 'name[SIMD16 {56; 1; 1} {64; 8; 1}], 1, 4731360, ...', fractions with a"
            f" point; {diagnostics.opening(text)}"
        )
    longest = max(launched, key=lambda r: _number(r["Average (ns)"]) or 0.0)
    name = longest["Kernel"]
    found = [*_launch(name), *_timed(longest), *_properties(text, name), *_counted(text, name)]
    _, cut = diagnostics.whole_lines(text)
    return Profile(metrics=tuple(found), remarks=(*_remarks(timed, longest), *cut))


def _rows(text: str, *sections: str) -> Iterator[Row]:
    """Complete rows of the tables in these sections, by column; each may hold several tables."""
    inside, head = False, list[str]()
    for line in diagnostics.whole_lines(text)[0].splitlines():
        title = _SECTION.match(line.strip())
        if title is not None:
            inside, head = title["name"] in sections, []
            continue
        if inside and _HEAD.match(line):
            head = _CELL.split(line.strip())
        elif inside and (row := _ROW.match(line)) is not None:
            cells = (row["name"], *_CELL.split(row["rest"].strip()))
            if len(cells) == len(head):
                yield dict(zip(head, cells, strict=True))


def _launch(name: str) -> Iterator[Metric]:
    """What stands in the kernel's own name."""
    match = _LAUNCH.match(name)
    assert match is not None
    groups, threads = (_product(match[part]) for part in ("groups", "block"))
    yield _metric("groups", float(groups), "group count")
    yield _metric("group_threads", float(threads), "group size")
    yield _metric("subgroup_width", float(match["width"]), "SIMD")


def _timed(row: Row) -> Iterator[Metric]:
    time = _number(row["Average (ns)"])
    if time is not None:
        yield _metric("kernel_us", time * 1e-3, "Average (ns)")


def _properties(text: str, kernel: str) -> Iterator[Metric]:
    row = next((r for r in _rows(text, "Kernel Properties") if r["Kernel"] == kernel), {})
    for name, column in _PROPERTIES.items():
        value = _number(row.get(column, ""))
        if value is not None:
            yield _metric(name, value, column)


def _counted(text: str, kernel: str) -> Iterator[Metric]:
    """Hardware counters of the kernel's longest launch."""
    rows = [r for r in _rows(text, "Kernel Metrics") if r["Kernel"] == kernel]
    row = max(rows, key=lambda r: _number(r.get("GpuTime[ns]", "")) or 0.0, default=Row())
    for name, column in _COUNTERS.items():
        value = _number(row.get(column, ""))
        if value is not None:
            yield _metric(name, value / 100, column)
    read, written = (_number(row.get(column, "")) for column in _BYTES)
    if read is None or written is None:
        return
    yield _metric("dram_bytes", read + written, "GPU_MEMORY_BYTE_READ + _WRITE")
    time = _number(row.get("GpuTime[ns]", ""))
    if time:
        yield _metric("dram_gb_s", (read + written) / time, "GPU_MEMORY_BYTE_* / GpuTime")


def _remarks(timed: Sequence[Row], longest: Row) -> Iterator[str]:
    """The longest first, then what else the device did."""
    order = sorted(timed, key=lambda r: -(_number(r["Time (ns)"]) or 0.0))
    for row in (longest, *(r for r in order if r is not longest))[:KERNELS]:
        time = (_number(row["Time (ns)"]) or 0.0) * 1e-3
        yield f"{row['Kernel']}: {time:.1f} us in {row['Calls']} calls ({row['Time (%)']} %)"


def _product(text: str) -> int:
    total = 1
    for part in text.split(";"):
        total *= int(part)
    return total


def _number(text: str) -> float | None:
    """A finite number; None for anything else."""
    return float(text) if re.fullmatch(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", text) else None


def _metric(name: str, value: float, source: str) -> Metric:
    return Metric(name=name, value=value, unit=METRICS[name].unit, source=f"unitrace: {source}")
