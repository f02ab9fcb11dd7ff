"""Work that needs a device for itself."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from data.records import Device
from tasks.retry import patiently

T = TypeVar("T")


class Lender(Protocol):
    """A machine, as far as it lends its devices."""

    def turn(self, device: Device) -> AbstractAsyncContextManager[object]: ...


async def leased(machine: Lender, device: Device, work: Callable[[], Awaitable[T]]) -> T:
    """What `work` returns while nobody else uses the device.

    Each try has a lease of its own: the one of a try that failed may be lost with the machine.
    """

    async def once() -> T:
        async with machine.turn(device):
            return await work()

    return await patiently(once)
