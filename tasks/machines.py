"""The machines that this process talks to: one connection each, however many pairs share it."""

from pathlib import Path

from data.errors import MachineError
from data.records import Device
from targets.machines.local import LocalMachine

_open: dict[tuple[str, Path], LocalMachine] = {}


def machine_for(device: Device, runs: Path) -> LocalMachine:
    """The machine that holds the device; MachineError for a transport that is not there yet."""
    if device.machine != "local":
        raise MachineError(
            f"device {device.name!r} is on machine {device.machine!r}; only `local` can be reached"
        )
    key = (device.machine, runs.resolve())
    if key not in _open:
        _open[key] = LocalMachine(runs / ".cache")
    return _open[key]


def close_machines() -> None:
    """Ends the judge servers of this process."""
    while _open:
        _, machine = _open.popitem()
        machine.close()
