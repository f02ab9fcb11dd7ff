"""The kernels in a trace of torch.profiler: what is left where hardware counters are refused."""

import json
from collections.abc import Iterator
from typing import Any

from data.errors import MachineError
from data.metrics import METRICS
from data.records import Metric, Profile

_FIELDS = {
    "registers per thread": ("registers_per_thread", 1.0),
    "shared memory": ("shared_bytes", 1.0),
    "est. achieved occupancy %": ("theoretical_occupancy", 1e-2),
    "warps per SM": ("warps_per_unit", 1.0),
}
"""Of a kernel event's `args`: the term and its factor."""


def profile(text: str) -> Profile:
    """Of the kernel that took longest in all. MachineError for text that is no such trace."""
    totals: dict[str, float] = {}
    last: dict[str, dict[str, Any]] = {}
    for event in _kernels(text):
        name = str(event.get("name", ""))
        totals[name] = totals.get(name, 0.0) + float(event.get("dur", 0.0))
        last[name] = event.get("args", {})
    if not totals:
        raise MachineError("the trace of torch.profiler holds no kernel")
    longest = max(totals, key=lambda name: totals[name])
    metrics = [_metric("kernel_us", totals[longest], "dur")]
    for field, (name, factor) in _FIELDS.items():
        value = last[longest].get(field)
        if isinstance(value, int | float):
            metrics.append(_metric(name, value * factor, field))
    shares = [f"{name}: {us:.1f} us" for name, us in sorted(totals.items(), key=lambda i: -i[1])]
    return Profile(metrics=tuple(metrics), remarks=tuple(shares[:8]))


def _kernels(text: str) -> Iterator[dict[str, Any]]:
    try:
        events = json.loads(text)["traceEvents"]
        yield from (e for e in events if e.get("cat") == "kernel")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MachineError(f"no trace of torch.profiler: {type(error).__name__} {error}") from None


def _metric(name: str, value: float, field: str) -> Metric:
    return Metric(name=name, value=value, unit=METRICS[name].unit, source=f"torch.profiler {field}")
