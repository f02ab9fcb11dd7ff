"""What a candidate may not leave on a device: a context, memory, a kernel that never ends.

Device memory has no control group and a poisoned device fails the next candidate, so all three are
looked at after each one. The device is then suspect: the machine's fault (MachineError).
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from data.errors import MachineError
from targets.remote.accelerator import Kind

GONE_S = 10.0
"""A killed process with a running kernel needs seconds until the driver has let go of it."""
HEALTH_S = 20.0
LEFT_BYTES = 3 << 29
"""The judge's own context and its lazily loaded code take 0.6 GB; who hides memory hides more."""


@contextmanager
def watched(kind: Kind, pids: Sequence[int]) -> Iterator[None]:
    """Around a candidate's judgement; `pids` fills with its children. Raises MachineError."""
    if not kind.maps_answers:
        yield
        return
    before = kind.used_bytes()
    yield
    _gone(kind, pids)
    if not _answers(kind):
        raise MachineError("the device does not answer after a candidate: look at it by hand")
    left = _left(kind, before)
    if left > LEFT_BYTES:
        raise MachineError(f"{left >> 20} MiB of device memory are missing after a candidate")


def _gone(kind: Kind, pids: Sequence[int]) -> None:
    until = time.monotonic() + GONE_S
    while remaining := kind.users().intersection(pids):
        if time.monotonic() > until:
            raise MachineError(f"process {min(remaining)} is dead and still holds the device")
        time.sleep(0.01)


def _left(kind: Kind, before: int) -> int:
    """Bytes more in use than before, once that has settled."""
    until = time.monotonic() + 1.0
    while (left := kind.used_bytes() - before) > LEFT_BYTES and time.monotonic() < until:
        time.sleep(0.02)
    return left


def _answers(kind: Kind) -> bool:
    """In a thread, since a hung device never returns."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(kind.healthy()), daemon=True)
    thread.start()
    thread.join(HEALTH_S)
    return found == [True]
