"""The devices that can be named, and what each can do here."""

import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from data.errors import MisuseError
from data.records import Device
from targets import TARGETS
from targets.base import Capabilities


def known() -> tuple[Device, ...]:
    """Every device that a command may name: for now this machine's processor."""
    target = TARGETS["cpu"]
    arch = platform.machine()
    return (Device(name="cpu", target=target.name, vendor=target.vendor, arch=arch),)


def find(names: Sequence[str]) -> tuple[Device, ...]:
    """The named devices, each once; MisuseError for an unknown name or none at all."""
    by_name = {d.name: d for d in known()}
    listed = ", ".join(by_name)
    if not names:
        raise MisuseError(f"no device is named; give --device NAME (known: {listed})")
    for name in names:
        if name not in by_name:
            raise MisuseError(f"unknown device {name!r}; known: {listed} (kforge devices)")
    return tuple(by_name[n] for n in dict.fromkeys(names))


def capabilities(device: Device) -> Capabilities:
    """What the device can do with the tools of this machine."""
    target = TARGETS[device.target]
    found = frozenset(t for t in target.tools if shutil.which(t) or Path(t).exists())
    return target.capabilities(found)
