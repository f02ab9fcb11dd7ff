"""The devices that a command names."""

from collections.abc import Sequence

from data.errors import MisuseError
from data.records import Device
from targets.machines import inventory


def find(names: Sequence[str]) -> tuple[Device, ...]:
    """The named devices, each once; MisuseError for an unknown name or none at all."""
    if not names:
        known = ", ".join(inventory.devices())
        raise MisuseError(f"no device is named; give --device NAME (known: {known})")
    return tuple(inventory.device(n) for n in dict.fromkeys(names))
