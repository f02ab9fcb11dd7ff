"""The closed vocabulary of metrics: one name, unit and meaning, whoever measured it.

What a vendor calls it stands in `Metric.source` of each value and in `vendors` here.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Merge(StrEnum):
    """How the values of several kernels become one of their candidate."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One word of the vocabulary."""

    name: str
    unit: str
    meaning: str
    merge: Merge = Merge.MAX
    vendors: dict[str, str] = field(default_factory=dict)
    """By tool: the name there."""


def _term(name: str, unit: str, meaning: str, merge: Merge = Merge.MAX, **vendors: str) -> Term:
    return Term(name=name, unit=unit, meaning=meaning, merge=merge, vendors=vendors)


SHARE = "share of peak"
_ROOFLINE = (
    _term("time_us", "us", "median time of a call"),
    _term("floor_us", "us", "time that the device needs at its peaks: max(F/P, B/W)"),
    _term("time_over_floor", "ratio", "time over the floor; 1 is the best possible"),
    _term("speedup", "baseline time / candidate time", "paired with the named baseline"),
    _term("achieved_gb_s", "GB/s", "necessary bytes over time"),
    _term("peak_gb_s", "GB/s", "peak of main memory"),
    _term("bandwidth_share", SHARE, "achieved_gb_s over peak_gb_s"),
    _term("achieved_gflop_s", "GFLOP/s", "operations over time"),
    _term("peak_gflop_s", "GFLOP/s", "peak of the arithmetic in float32"),
    _term("compute_share", SHARE, "achieved_gflop_s over peak_gflop_s"),
    _term("arithmetic_intensity", "flop/byte", "operations over necessary bytes"),
    _term("machine_balance", "flop/byte", "peak_gflop_s over peak_gb_s"),
    _term("null_us", "us", "the judge's own cost of a call"),
    _term("null_share", "share of time", "null_us over time_us"),
    _term("threads", "count", "threads of the processor, multiprocessors of a device"),
    _term("moved_mib", "MiB", "necessary bytes of a call"),
    _term("cache_mib", "MiB", "last-level cache"),
)
_STATIC = (
    _term("loops_vectorised", "count", "loops that became SIMD code", Merge.SUM),
    _term("loops_missed", "count", "loops that did not become SIMD code", Merge.SUM),
    _term("registers_per_thread", "count", "vector registers that a thread holds"),
    _term("spill_load_bytes", "byte", "code bytes reloaded from spilled registers", Merge.SUM),
    _term(
        "spill_store_bytes", "byte", "code bytes of registers stored for want of room", Merge.SUM
    ),
    _term("stack_bytes", "byte", "local memory of a thread"),
    _term("shared_bytes", "byte", "static memory that a work group shares"),
    _term("barriers", "count", "hardware barriers used"),
)

ROOFLINE: dict[str, Term] = {t.name: t for t in _ROOFLINE}
METRICS: dict[str, Term] = {t.name: t for t in (*_ROOFLINE, *_STATIC)}
