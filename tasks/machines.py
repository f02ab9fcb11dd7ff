"""The machines that this process talks to: one connection each, however many pairs share it."""

import uuid
from collections.abc import Callable
from pathlib import Path

from data.errors import MachineError
from data.records import Device
from targets.machines import inventory
from targets.machines.ec2 import Ec2Machine
from targets.machines.instance import by_ssh
from targets.machines.local import LocalMachine
from targets.machines.remote import RemoteMachine
from targets.machines.slurm import SlurmMachine
from targets.machines.slurm_entry import SlurmEntry
from targets.machines.spool import PATIENCE_S, SpoolMachine
from targets.machines.ssh import Destination, ssh_machine

Reached = LocalMachine | RemoteMachine | SlurmMachine | SpoolMachine | Ec2Machine

OTHERS: dict[str, Callable[[Device, Path], Reached]] = {}
"""Further machines by name and how each is opened: tests put a simulated one here."""

_open: dict[tuple[str, str, Path], Reached] = {}


def machine_for(device: Device, runs: Path, *, scope: str | None = None) -> Reached:
    """The machine that holds the device; MachineError for a transport that is not there yet.

    `scope` is a run whose jobs are found again when it is resumed; without it nothing is.
    """
    known = inventory.spools()
    behind = device.name if device.machine in known else ""
    key = (device.machine, behind, runs.resolve())
    if key not in _open:
        _open[key] = _opened(device, runs, scope or uuid.uuid4().hex)
    return _open[key]


def _opened(device: Device, runs: Path, scope: str) -> Reached:
    name = device.machine
    if name in OTHERS:
        return OTHERS[name](device, runs)
    if name == "local":
        return LocalMachine(runs / ".cache")
    if host := inventory.destinations().get(name):
        login = ssh_machine(destination(host), scope=scope)
        return SlurmMachine(name, login, host.batch) if isinstance(host, SlurmEntry) else login
    if entry := inventory.spools().get(name):
        patience_s = max(entry.wait_minutes * 60.0, PATIENCE_S)
        return SpoolMachine(device, entry.place, patience_s=patience_s)
    if cloud := inventory.clouds().get(name):
        reach = by_ssh(cloud, runs.absolute() / ".cache", scope=scope)
        return Ec2Machine(cloud.wanted, reach, idle_s=cloud.idle_minutes * 60.0)
    raise MachineError(f"device {device.name!r} is on machine {name!r}, which cannot be reached")


def destination(entry: inventory.LoginEntry) -> Destination:
    """Where an entry of the file leads."""
    return Destination(
        name=entry.name,
        host=entry.host,
        python=entry.python,
        root=entry.root,
        config=Path(entry.config).expanduser().absolute() if entry.config else None,
    )


def close_machines() -> None:
    """Ends the judge servers of this process."""
    while _open:
        _, machine = _open.popitem()
        machine.close()
