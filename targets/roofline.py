"""A candidate's time against what the device could do: the metrics that all targets share.

With the analytic operations F and bytes B of a call, peak bandwidth W and peak rate P, the floor is
max(F/P, B/W); `arithmetic_intensity` = F/B and `machine_balance` = P/W say which of the two binds.
"""

from dataclasses import dataclass
from statistics import median

from data.metrics import ROOFLINE
from data.records import (
    Admission,
    BuildResult,
    Card,
    Metric,
    Profile,
    RunResult,
    Shape,
    Timing,
)

MEBI = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a call needs, and what the device offers."""

    flops: float | None
    moved_bytes: float
    peak_gb_s: float | None
    peak_gflop_s: float | None
    floor_us: float | None


def profile(admission: Admission, shape: Shape, build: BuildResult, run: RunResult) -> Profile:
    """The roofline of `shape` beside what the profiler counted and the compiler said."""
    counted = run.counted or Profile(metrics=())
    found = (*metrics(admission, shape, run), *counted.metrics, *build.metrics)
    first = {m.name: m for m in reversed(found)}
    unique = tuple(m for m in found if first[m.name] is m)
    return Profile(metrics=unique, remarks=(*counted.remarks, *build.remarks))


def metrics(admission: Admission, shape: Shape, run: RunResult) -> tuple[Metric, ...]:
    """The roofline of `shape`; without a time only what follows from the shape and the card."""
    timing = next((t for t in run.timings if t.shape == shape.name), None)
    cost = _cost(admission, shape)
    values = {**_demand(cost), **_machine(admission.card)}
    if timing is not None:
        values |= _achieved(cost, timing)
    return tuple(
        Metric(name=name, value=value, unit=ROOFLINE[name].unit, source="roofline")
        for name, value in values.items()
        if value is not None
    )


def _cost(admission: Admission, shape: Shape) -> Cost:
    card = admission.card
    rate = card.peak_tflop_s.get("float32") if card else None
    return Cost(
        flops=shape.flops,
        moved_bytes=shape.moved_bytes,
        peak_gb_s=card.peak_gb_s if card else None,
        peak_gflop_s=rate * 1e3 if rate else None,
        floor_us=shape.floor_us,
    )


def _demand(cost: Cost) -> dict[str, float | None]:
    balance = None
    if cost.peak_gflop_s and cost.peak_gb_s:
        balance = cost.peak_gflop_s / cost.peak_gb_s
    return {
        "floor_us": cost.floor_us,
        "peak_gb_s": cost.peak_gb_s,
        "peak_gflop_s": cost.peak_gflop_s,
        "arithmetic_intensity": _ratio(cost.flops, cost.moved_bytes),
        "machine_balance": balance,
        "moved_mib": cost.moved_bytes / MEBI,
    }


def _machine(card: Card | None) -> dict[str, float | None]:
    if card is None:
        return {}
    return {"threads": float(card.cores), "cache_mib": card.cache_mib or None}


def _achieved(cost: Cost, timing: Timing) -> dict[str, float | None]:
    """What the timed calls reached; the judge's own cost is taken off the time first."""
    time_us = median(timing.samples_us) if timing.samples_us else timing.candidate_us
    own_us = max(time_us - timing.null_us, 1e-3)
    floor_us = cost.floor_us if cost.floor_us is not None else timing.floor_us
    bandwidth = cost.moved_bytes / own_us * 1e-3
    rate = cost.flops / own_us * 1e-3 if cost.flops is not None else None
    return {
        "time_us": time_us,
        "floor_us": floor_us,
        "time_over_floor": _ratio(own_us, floor_us),
        "speedup": timing.ratio,
        "achieved_gb_s": bandwidth,
        "bandwidth_share": _ratio(bandwidth, cost.peak_gb_s),
        "achieved_gflop_s": rate,
        "compute_share": _ratio(rate, cost.peak_gflop_s),
        "null_us": timing.null_us,
        "null_share": _ratio(timing.null_us, time_us),
    }


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
