"""Which confirmed kernels go into a package, and why the others do not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.champions import champions, standing
from data.errors import ExportError, MisuseError
from data.records import Iteration, Policy
from tasks.pages import speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is asked for."""

    runs: Path
    devices: tuple[str, ...]
    operators: tuple[str, ...] = ()
    """Names; none means all that are confirmed there."""
    policy: Policy = Policy.STRICT
    unreviewed: bool = False
    """Also kernels that somebody should look at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A kernel that is not in the package."""

    name: str
    """`operator@device`."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The kernels of a package, each the best of its operator and device."""

    kernels: tuple[Iteration, ...]
    left_out: tuple[LeftOut, ...]


def chosen(terms: Terms) -> Chosen:
    """The kernels that the terms ask for.

    MisuseError for a device or operator without any confirmed kernel, ExportError where one that
    is named, or all of them, must not leave the house.
    """
    known = [c for c in champions(terms.runs) if c.contract.policy is terms.policy]
    _on_record(known, terms)
    wanted = [
        c
        for c in known
        if c.device.name in terms.devices
        and (not terms.operators or c.operator.name in terms.operators)
    ]
    best = list(_best(wanted))
    refused = [LeftOut(name=name_of(c), reason=why) for c in best if (why := _refusal(c, terms))]
    kept = tuple(c for c in best if not _refusal(c, terms))
    require({c.operator.name for c in kept}, refused, terms)
    return Chosen(kernels=kept, left_out=tuple(refused))


def name_of(kernel: Iteration) -> str:
    """Operator and device, as in `kforge show`."""
    return f"{kernel.operator.name}@{kernel.device.name}"


def require(kept: set[str], left_out: Sequence[LeftOut], terms: Terms) -> None:
    """ExportError when an operator that was named is not kept, or none is."""
    reasons = "; ".join(f"{left.name}: {left.reason}" for left in left_out)
    missing = sorted(set(terms.operators) - kept)
    if missing:
        raise ExportError(f"{', '.join(missing)} cannot be exported: {reasons}")
    if not kept:
        raise ExportError(f"nothing is left to export: {reasons}")


def _on_record(known: Sequence[Iteration], terms: Terms) -> None:
    """MisuseError for a name without any confirmed kernel, with what is on record of it."""
    confirmed = {(c.operator.name, c.device.name) for c in known}
    for device in terms.devices:
        if device not in {d for _, d in confirmed}:
            listed = ", ".join(sorted({d for _, d in confirmed})) or "none"
            raise MisuseError(
                f"no confirmed kernel on {device!r} under {terms.policy.value}; devices that have "
                f"some: {listed}"
            )
    for operator in terms.operators:
        here = {o for o, d in confirmed if d in terms.devices}
        if operator not in here:
            state = standing(terms.runs, operator, terms.devices)
            told = f"its steps ended as {state}" if state else "nothing of it is on record"
            raise MisuseError(
                f"no confirmed kernel for {operator!r} on {', '.join(terms.devices)} under "
                f"{terms.policy.value}: {told}; confirmed there: {', '.join(sorted(here))}"
            )


def _best(wanted: Sequence[Iteration]) -> Iterator[Iteration]:
    """One kernel an operator's name and device: of its latest text, the best of all contracts."""
    names = dict.fromkeys((c.operator.name, c.device.name) for c in wanted)
    for operator, device in names:
        mine = [c for c in wanted if (c.operator.name, c.device.name) == (operator, device)]
        latest = max(mine, key=lambda c: c.ended_at).operator.hash
        yield max(
            (c for c in mine if c.operator.hash == latest), key=lambda c: c.speedup_low or 0.0
        )


def _refusal(kernel: Iteration, terms: Terms) -> str:
    """Why the kernel is not shipped; empty when it is."""
    if kernel.needs_review and not terms.unreviewed:
        why = "; ".join(kernel.run.review) if kernel.run and kernel.run.review else kernel.reason
        return f"it needs review ({why}); --unreviewed takes it along"
    timings = kernel.run.timings if kernel.run else ()
    if timings and all(t.high < 1.0 for t in timings):
        return f"it is slower than its baseline: {speed(kernel)} over {kernel.baseline}"
    return ""
