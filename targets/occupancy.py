"""How many groups fit on one unit of a device, and what stands in the way of more."""

from dataclasses import dataclass

from targets.cards import Limits

LANES = 32
WARPS_STEP = 4
"""Warps get registers in fours: one for each scheduler of the unit."""
SHARED_STEP = 128
"""Bytes in which shared memory is given (ncu: 213,188 + 1,024 become 214,272)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Of a kernel with groups of a given size."""

    groups: int
    """On one unit at a time."""
    share: float
    """Active threads over the most that a unit holds."""
    limit: str
    """`registers`, `shared memory`, `threads` or `groups`: what allows no more."""


def occupancy(limits: Limits, *, registers: int, shared_bytes: int, threads: int) -> Occupancy:
    """By the unit's limits; needs a card that knows registers, threads and groups of a unit.

    >>> from targets.cards import for_arch
    >>> occupancy(for_arch("sm_90").limits, registers=168, shared_bytes=213188, threads=384)
    Occupancy(groups=1, share=0.1875, limit='registers')
    """
    allowed = by_resource(limits, registers=registers, shared_bytes=shared_bytes, threads=threads)
    limit = min(allowed, key=lambda name: allowed[name])
    groups = allowed[limit]
    warps = -(-threads // LANES)
    return Occupancy(
        groups=groups, share=groups * warps * LANES / (limits.threads or 1), limit=limit
    )


def by_resource(
    limits: Limits, *, registers: int, shared_bytes: int, threads: int
) -> dict[str, int]:
    """The groups that each resource alone would allow."""
    warps = -(-threads // LANES)
    step = limits.register_step or 1
    per_warp = -(-max(registers, 1) * LANES // step) * step
    fitting = (limits.registers or 0) // per_warp // WARPS_STEP * WARPS_STEP
    taken = shared_bytes + limits.shared_reserved_bytes
    shared = -(-taken // SHARED_STEP) * SHARED_STEP
    total = (limits.shared_bytes or 0) // max(shared, 1)
    return {
        "registers": fitting // warps,
        "shared memory": total if shared else limits.groups or 0,
        "threads": (limits.threads or 0) // (warps * LANES),
        "groups": limits.groups or 0,
    }
