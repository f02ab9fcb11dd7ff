"""The XML that `xctrace export` prints of a Metal trace: intervals of the GPU.

A value stands once with an `id`; later rows say `ref`. A second node may lean on the first one's
schema. Written after the format as TOOLCHAINS.md, section 9, reports it; no Mac has tried it here.
"""

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

from data.errors import MachineError
from data.metrics import METRICS
from data.records import Metric, Profile

SCHEMA = "metal-gpu-intervals"
EXPORT = f'/trace-toc/run[@number="1"]/data/table[@schema="{SCHEMA}"]'
_RECORD = (
    "xcrun xctrace record --template 'Metal System Trace' --output kforge.trace --launch"
    f" -- \"$@\" >&2 && xcrun xctrace export --input kforge.trace --xpath '{EXPORT}'"
)
KEPT = 8
"""Kernels that an analyst reads; the longest in all first."""
LABELS = ("label", "event-label", "name", "cmdbuffer-label")


def command(program: Sequence[str]) -> tuple[str, ...]:
    """Records the program and prints the intervals."""
    return ("sh", "-c", _RECORD, "sh", *program)


def profile(text: str) -> Profile:
    """Time of the kernel that took longest in all. MachineError for text that holds none."""
    totals: dict[str, list[float]] = {}
    for row in rows(text):
        duration = row.get("duration", "")
        channel = row.get("channel-name", row.get("channel", "Compute"))
        if "ompute" in channel and duration.isdigit():
            label = next((row[k] for k in LABELS if row.get(k)), "unnamed")
            totals.setdefault(label, []).append(int(duration) / 1000)
    if not totals:
        raise MachineError("the xctrace export holds no interval of a compute kernel")
    order = sorted(totals, key=lambda name: -sum(totals[name]))
    longest = sorted(totals[order[0]])
    middle = longest[len(longest) // 2]
    unit = METRICS["kernel_us"].unit
    metric = Metric(name="kernel_us", value=middle, unit=unit, source=f"xctrace {SCHEMA} duration")
    said = [f"{n}: {len(totals[n])} intervals, {sum(totals[n]):.1f} us" for n in order[:KEPT]]
    return Profile(metrics=(metric,), remarks=tuple(said))


def rows(text: str) -> Iterator[dict[str, str]]:
    """Each row by its columns' mnemonics: raw numbers, else the text as formatted."""
    if re.search(r"<!(?:DOCTYPE|ENTITY)", text):
        raise MachineError("no export of xctrace: it declares entities")
    try:
        tree = ET.fromstring(text)  # noqa: S314 (no entities: checked above)
    except ET.ParseError as error:
        raise MachineError(f"no export of xctrace, or one cut off: {error}") from None
    known = {e.attrib["id"]: e for e in tree.iter() if "id" in e.attrib}
    columns: list[str] = []
    for node in tree.iter("node"):
        schema = node.find("schema")
        if schema is not None and schema.find("col") is not None:
            columns = [c.findtext("mnemonic", "") for c in schema.iter("col")]
        for row in node.iter("row"):
            values = [_value(cell, known) for cell in row]
            yield dict(zip(columns, values, strict=False))


def _value(cell: ET.Element, known: dict[str, ET.Element]) -> str:
    """The number as it is, else the text that the tool shows; empty for a sentinel."""
    found = known.get(cell.attrib.get("ref", ""), cell)
    plain = (found.text or "").strip()
    return plain if plain.isdigit() or "fmt" not in found.attrib else found.attrib["fmt"]
