"""A gate on the device: calls are launched ahead and run when the judge says so.

A call of 10 us is otherwise as long as its launch takes on the host, which differs between two
processes of the same code by a quarter. The word lies in memory of the host, since no kernel of the
judge can run in between without the device changing processes.
"""

import struct

from targets.remote.memory import HostMemory

QUEUE_S = 0.1
"""Calls that are not launched after this wait for the device or fill its queue."""


class Gate:
    """One side's; each message has a number of its own."""

    def __init__(self) -> None:
        self.memory = HostMemory.new(4096)
        self._number = 0

    def shut(self) -> int:
        """The number that the next message waits for."""
        self._number += 1
        return self._number

    def open(self) -> None:
        """For all that waits so far."""
        struct.pack_into("<I", self.memory.buffer, 0, self._number)
