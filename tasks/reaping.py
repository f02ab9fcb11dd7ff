"""Clearing up on the machines of `devices.toml`: what crashes and old versions left there."""

from collections.abc import Iterator
from dataclasses import dataclass

from data.errors import MachineError, MisuseError
from targets.machines import inventory
from targets.machines.ssh import clean
from tasks.machines import destination


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """What was done on a machine, or why nothing could be."""

    machine: str
    ok: bool
    found: str


def reap(names: tuple[str, ...], days: float) -> Iterator[Reaped]:
    """Clears up on the named machines, on all when none is named; MisuseError for an unknown one.

    What a connected controller uses stays. Caches and code unused for so many days go.
    """
    known = inventory.destinations()
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise MisuseError(f"no machine {name!r} that can be cleared up; known: {listed}")
    for name in names or tuple(known):
        try:
            told = clean(destination(known[name]), days)
        except MachineError as error:
            yield Reaped(machine=name, ok=False, found=str(error))
            continue
        busy = f"; {told['busy']} in use" if told["busy"] else ""
        yield Reaped(
            machine=name,
            ok=True,
            found=f"ended {told['residents']} residents and {told['jobs']} lost jobs,"
            f" removed {told['old']} old folders{busy}",
        )
