"""Clearing up here and on the machines of `devices.toml`: what crashes and old versions left."""

from collections.abc import Iterator
from dataclasses import dataclass

from data.errors import MachineError, MisuseError
from targets.machines import ec2, inventory
from targets.machines.ssh import clean
from targets.remote import strays
from tasks.machines import destination

HERE = "local"


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
    known, clouds = inventory.destinations(), inventory.clouds()
    every = (HERE, *known, *clouds)
    for name in names:
        if name not in every:
            listed = ", ".join(every)
            raise MisuseError(f"no machine {name!r} that can be cleared up; known: {listed}")
    for name in names or every:
        if name == HERE:
            yield Reaped(machine=name, ok=True, found=f"removed {strays.sweep()} old folders")
            continue
        if name in clouds:
            yield _reaped_cloud(name, clouds[name].region)
            continue
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


def _reaped_cloud(name: str, region: str) -> Reaped:
    """Instances whose controller is gone or whose hours are over, ended."""
    try:
        ended = ec2.reap(name, region)
    except MachineError as error:
        return Reaped(machine=name, ok=False, found=str(error))
    return Reaped(machine=name, ok=True, found="; ".join(ended) or "no instance was left behind")
