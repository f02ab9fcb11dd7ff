"""Which machine a pair goes to: the least loaded one that has its device and works."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from data.errors import MachineError
from data.records import Device

LEFT_OUT_S = 600.0
"""A machine that failed is looked at again after this; a restarted host is back by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A device on one of the machines that have it."""

    machine: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a place is left out, and until when (`time.monotonic`)."""

    why: str
    until: float


class Placement:
    """The pairs of this process on their places."""

    def __init__(self) -> None:
        self._load: Counter[Place] = Counter()
        self._faults: dict[Place, Fault] = {}
        self.sound: set[Place] = set()
        """Those that judged a known kernel right."""

    @contextmanager
    def taken(self, choices: tuple[Device, ...]) -> Iterator[Device]:
        """The least loaded of the choices, counted while the context is open.

        MachineError, never retried, when all of them are left out: it says why.
        """
        usable = [d for d in choices if self.fault(d) is None]
        if not usable:
            said = "; ".join(f"{d.machine}: {self.fault(d)}" for d in choices)
            raise MachineError(
                f"no machine is left for {choices[0].name!r}: {said}", retryable=False
            )
        device = min(usable, key=lambda d: self._load[place(d)])
        self._load[place(device)] += 1
        try:
            yield device
        finally:
            self._load[place(device)] -= 1

    def fault(self, device: Device) -> str | None:
        """Why the device's place is left out now; None when it is not."""
        fault = self._faults.get(place(device))
        return fault.why if fault is not None and fault.until > time.monotonic() else None

    def leave_out(self, device: Device, why: str) -> None:
        """No pair goes there for ten minutes; then it has to prove itself again."""
        until = time.monotonic() + LEFT_OUT_S
        self._faults[place(device)] = Fault(why=why, until=until)
        self.sound.discard(place(device))


def place(device: Device) -> Place:
    return Place(machine=device.machine, index=device.index)
