"""Nsight Compute's CSV as values: the details page (a row a metric), the raw page (a row a kernel).

Numbers are read with the notation that the whole output shows (`26,138.50` or `26.138,50`), and
brought to the units of `data/metrics.py`. Rule rows are advice: they are kept in ncu's words.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from data.errors import MachineError
from data.metrics import METRICS
from data.records import Metric, Profile
from targets import diagnostics

OPTIONS = ("--csv", "--page", "details", "--set", "detailed", "--clock-control", "none")
EXTRA = ("dram__bytes_read.sum", "dram__bytes_write.sum")
RULES = 8
"""Advices that an analyst reads; the largest estimated gain first."""
RULE_LENGTH = 300
STALLS = 4
"""Reasons to wait that an analyst reads: a profile has 25 metrics at most."""
DENIED = "ERR_NVGPUCTRPERM"
_NUMBER = re.compile(r"-?\d[\d.,\u00a0\u202f' ]*$")
_NAMES: dict[str, str] = {
    name: term.name for term in METRICS.values() for name in term.vendors.get("ncu", "").split("|")
}
_SCALE = {
    "ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3,
    "s": 1e6, "second": 1e6,
    "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9,
    "byte/block": 1.0, "Kbyte/block": 1e3,
    "byte/s": 1e-9, "byte/second": 1e-9, "Kbyte/s": 1e-6, "Kbyte/second": 1e-6,
    "Mbyte/s": 1e-3, "Mbyte/second": 1e-3, "Gbyte/s": 1.0, "Gbyte/second": 1.0,
    "Tbyte/s": 1e3, "Tbyte/second": 1e3,
    "%": 1e-2,
}  # fmt: skip
"""To microseconds, bytes, GB/s and shares; other units stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One profiled launch."""

    name: str
    metrics: tuple[Metric, ...]
    rules: tuple[str, ...] = ()
    """`rule (estimated gain 14 %): text`, the largest gain first."""

    def value(self, name: str) -> float | None:
        return next((m.value for m in self.metrics if m.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """All launches of one run of ncu."""

    kernels: tuple[Kernel, ...]
    notes: tuple[str, ...] = ()
    """Warnings of ncu and what was found amiss in its text."""


def command(program: Sequence[str], *, ncu: str = "ncu") -> tuple[str, ...]:
    """Profiles what `program` launches after `torch.cuda.profiler.start()`; clocks stay as is."""
    return (ncu, *OPTIONS, "--metrics", ",".join(EXTRA), "--profile-from-start", "off", *program)


def parse(text: str) -> Output:
    """The launches in ncu's output. MachineError when there is none to read, with the reason."""
    before, table = _split(text)
    notes = [m for line in before if (m := line.removeprefix("==WARNING== ")) != line]
    if DENIED in text:
        raise MachineError(
            f"ncu may not read the performance counters ({DENIED}): let an administrator allow it"
            " (NVreg_RestrictProfilingToAdminUsers=0) or give the container CAP_SYS_ADMIN"
        )
    if not table:
        errors = [line.removeprefix("==ERROR== ") for line in before if line.startswith("==ERROR")]
        if errors:
            raise MachineError(f"ncu failed: {errors[-1]}")
        raise MachineError(
            f"ncu's output holds no table; expected the output of ncu --csv with commas;"
            f" {diagnostics.opening(text)}"
        )
    rows, lost = _rows(table)
    if lost:
        notes.append(f"the output is cut off: incomplete rows: {lost}")
    if not rows:
        raise MachineError("ncu's output ends before its first complete row")
    read = _details(rows) if "Metric Name" in rows[0] else _raw(rows)
    return Output(kernels=tuple(read), notes=tuple(dict.fromkeys(notes)))


def profile(text: str) -> Profile:
    """Of the launch that took longest; the others are named. MachineError as `parse`."""
    found = parse(text)
    longest = max(found.kernels, key=lambda k: k.value("kernel_us") or 0.0)
    total = sum(k.value("kernel_us") or 0.0 for k in found.kernels)
    own = longest.value("kernel_us") or 0.0
    which = f"{longest.name}: {own:.1f} us of {total:.1f} us in {len(found.kernels)} launches"
    remarks = (which, *_limit(longest), *longest.rules[:RULES], *found.notes)
    return Profile(metrics=_telling(longest.metrics), remarks=remarks)


def _telling(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """What fits a profile: of the waits the longest ones, the limits of occupancy in words."""
    waits = sorted((m for m in metrics if m.name.startswith("stall_")), key=lambda m: -m.value)
    others = [m for m in metrics if not m.name.startswith(("stall_", "limit_"))]
    return (*others, *waits[:STALLS])


def _limit(kernel: Kernel) -> tuple[str, ...]:
    """What allows no more groups on a unit."""
    limits = [m for m in kernel.metrics if m.name.startswith("limit_")]
    if not limits:
        return ()
    least = min(limits, key=lambda m: m.value)
    return (
        f"occupancy is limited by {least.name.removeprefix('limit_')}: {least.value:.0f} groups",
    )


def _split(text: str) -> tuple[list[str], str]:
    """The lines that ncu adds, and the table."""
    start = re.search(r'^"ID",', text, re.MULTILINE)
    head, table = (text[: start.start()], text[start.start() :]) if start else (text, "")
    lines = table.splitlines(keepends=True)
    own = [line.strip() for line in lines if line.startswith("==")]
    return [*head.splitlines(), *own], "".join(n for n in lines if not n.startswith("=="))


def _rows(table: str) -> tuple[list[dict[str, str]], int]:
    """Complete rows by column, and how many were incomplete.

    In the details page a row ends with its last cell that is not empty.
    """
    head, *rest = [row for row in csv.reader(io.StringIO(table)) if row]
    needed = head.index("Metric Value") + 1 if "Metric Value" in head else len(head)
    complete = [row for row in rest if needed <= len(row) <= len(head)]
    ended = not rest or table.endswith("\n") or (table.endswith('"') and len(rest[-1]) == len(head))
    if complete and complete[-1] is rest[-1] and not (ended and table.count('"') % 2 == 0):
        complete.pop()
    rows = [dict(zip_longest(head, row, fillvalue="")) for row in complete]
    return rows, len(rest) - len(complete)


def _details(rows: list[dict[str, str]]) -> Iterator[Kernel]:
    """A row a metric or rule."""
    mark = decimal_mark(row["Metric Value"] for row in rows)
    launches: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        launches.setdefault(row["ID"], []).append(row)
    for own in launches.values():
        cells = [_Cell(r["Metric Name"], r["Metric Unit"], r["Metric Value"]) for r in own]
        advice = sorted(filter(None, (_rule(r, mark) for r in own)), key=lambda a: -a[0])
        rules = tuple(text for _, text in advice)
        yield Kernel(name=own[0]["Kernel Name"], metrics=_metrics(cells, mark), rules=rules)


def _raw(rows: list[dict[str, str]]) -> Iterator[Kernel]:
    """A row a kernel; the first one holds the units."""
    units, *launches = rows
    if not launches:
        raise MachineError("ncu's output holds the units of its raw page and no kernel")
    mark = decimal_mark(v for row in launches for k, v in row.items() if units.get(k))
    for row in launches:
        cells = [_Cell(name, units[name], value) for name, value in row.items()]
        yield Kernel(name=row["Kernel Name"], metrics=_metrics(cells, mark))


@dataclass(frozen=True, slots=True)
class _Cell:
    name: str
    unit: str
    value: str


def _metrics(cells: Sequence[_Cell], mark: str) -> tuple[Metric, ...]:
    """What the vocabulary knows, with ncu's own name as the source."""
    found: dict[str, Metric] = {}
    for cell in cells:
        term = METRICS.get(_NAMES.get(f"{cell.name} [{cell.unit}]") or _NAMES.get(cell.name, ""))
        value = number(cell.value, mark)
        if term is not None and value is not None and term.name not in found:
            scaled = value * _SCALE.get(cell.unit, 1.0)
            found[term.name] = Metric(
                name=term.name, value=scaled, unit=term.unit, source=f"ncu {cell.name}"
            )
    if (moved := _moved(cells, found, mark)) is not None:
        found["dram_bytes"] = moved
    return tuple(found.values())


def _moved(cells: Sequence[_Cell], found: dict[str, Metric], mark: str) -> Metric | None:
    """Bytes to and from device memory: counted, else throughput times duration."""
    counted = {
        c.name: value * _SCALE.get(c.unit, 1.0)
        for c in cells
        if c.name in EXTRA and (value := number(c.value, mark)) is not None
    }
    if len(counted) == len(EXTRA):
        total, source = sum(counted.values()), "ncu dram__bytes_read.sum + dram__bytes_write.sum"
    elif {"dram_gb_s", "kernel_us"} <= found.keys():
        total = found["dram_gb_s"].value * found["kernel_us"].value * 1e3
        source = "ncu Memory Throughput x Duration"
    else:
        return None
    return Metric(name="dram_bytes", value=total, unit="byte", source=source)


def _rule(row: dict[str, str], mark: str) -> tuple[float, str] | None:
    """Estimated gain in per cent and the advice; None for a row that is a metric."""
    if not row.get("Rule Name"):
        return None
    gain = number(row.get("Estimated Speedup", ""), mark) or 0.0
    said = f" (estimated gain {gain:.0f} %)" if gain else ""
    text = " ".join(row["Rule Description"].split())[:RULE_LENGTH]
    return gain, f"{row['Rule Name']}{said}: {text}"


def decimal_mark(values: Iterator[str] | Sequence[str]) -> str:
    """`.` or `,`, as the numbers together show; a point where they show nothing.

    >>> decimal_mark(["26,138.50"]), decimal_mark(["26.138,50"]), decimal_mark(["0,48"])
    ('.', ',', ',')
    """
    votes = {".": 0, ",": 0}
    for value in values:
        digits = value.strip()
        if not _NUMBER.match(digits):
            continue
        last = max(digits.rfind("."), digits.rfind(","))
        if last < 0 or digits.count(digits[last]) > 1:
            continue
        other = "," if digits[last] == "." else "."
        if other in digits or len(digits) - last - 1 != 3 or digits.startswith(("0.", "0,")):
            votes[digits[last]] += 1
    return "," if votes[","] > votes["."] else "."


def number(text: str, mark: str) -> float | None:
    """The value in this notation; None for `N/A`, `no data` and words.

    >>> number("3,199,230,205.28", "."), number("26.138,50", ","), number("no data", ".")
    (3199230205.28, 26138.5, None)
    """
    plain = text.strip()
    if not _NUMBER.match(plain):
        return None
    kept = "".join(c for c in plain if c.isdigit() or c in ("-", mark)).replace(mark, ".")
    return float(kept) if kept.count(".") <= 1 else None
