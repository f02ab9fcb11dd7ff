"""Whether a claim about the bottleneck agrees with the measured shares of the peaks."""

from collections.abc import Callable

from data.records import Bottleneck, Profile

Value = Callable[[str], float | None]

UNCOUNTED = 32
"""Instructions that one counted operation may stand for: an accurate exponential takes 20 to 30."""
COUNTED = ("unit_share", "sm_busy", "issue_share", "matrix_share")
"""What a profiler counts of the arithmetic; it knows better than operations counted on paper."""


def contradiction(claim: Bottleneck, profile: Profile) -> str | None:
    """Why the metrics speak against the claim; None when they do not, or are not there.

    Claims are refused only where the figures leave no room: a local model named "compute" at 6 %
    of peak compute and 42 % of peak bandwidth (LLM.md, section 11).
    """
    return _RULES[claim](profile.value)


def _compute(value: Value) -> str | None:
    bandwidth, compute = value("bandwidth_share"), value("compute_share")
    if compute is not None and compute >= 0.2:
        return None
    if compute is None or bandwidth is None or bandwidth <= 0.4:
        return _too_little_to_compute(value)
    return f"compute-bound at {compute:.0%} of peak compute and {bandwidth:.0%} of peak bandwidth"


def _too_little_to_compute(value: Value) -> str | None:
    """From the operator and the device's card alone; a busy unit speaks for the claim.

    There is no such rule for memory: a kernel may move more than it must.
    """
    intensity, balance = value("arithmetic_intensity"), value("machine_balance")
    if intensity is None or balance is None or intensity * UNCOUNTED >= balance:
        return None
    if any((value(name) or 0.0) >= 0.5 for name in COUNTED):
        return None
    return (
        f"compute-bound with {intensity:.2g} operations a byte on a device that does {balance:.2g} "
        "of them in the time of a byte"
    )


def _memory(value: Value) -> str | None:
    bandwidth, compute = value("bandwidth_share"), value("compute_share")
    if bandwidth is None or compute is None or bandwidth >= 0.2 or compute <= 0.4:
        return None
    return f"memory-bound at {bandwidth:.0%} of peak bandwidth and {compute:.0%} of peak compute"


def _launch(value: Value) -> str | None:
    share = value("null_share")
    if share is None or share >= 0.1:
        return None
    return f"launch-bound although an empty call is {share:.0%} of the time"


def _none(value: Value) -> str | None:
    over = value("time_over_floor")
    if over is None or over <= 2.0:
        return None
    return f"nothing to gain at {over:.1f} times the roofline floor"


def _waiting(value: Value) -> str | None:
    over = value("time_over_floor")
    if over is None or over > 1.1:
        return None
    return f"waiting although the time is {over:.2f} times the roofline floor"


_RULES: dict[Bottleneck, Callable[[Value], str | None]] = {
    Bottleneck.COMPUTE: _compute,
    Bottleneck.MEMORY: _memory,
    Bottleneck.LAUNCH: _launch,
    Bottleneck.NONE: _none,
    Bottleneck.LATENCY: _waiting,
    Bottleneck.OCCUPANCY: _waiting,
}
