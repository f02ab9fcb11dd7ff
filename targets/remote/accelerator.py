"""What a kind of device can do for the judge and for the driver in a child.

A kind says where an operator's tensors lie, how judge and child share them, and how both wait for
the device. Kinds whose tensors lie on the host (the CPU, and later devices that torch does not
know) are read where the child says; the others leave every answer in memory of the judge.
"""

from collections.abc import Callable
from typing import Protocol

from data.records import Device
from targets.remote.memory import HostMemory, Memory


class Kind(Protocol):
    """One device, as a process that uses it sees it; nothing is touched before `begin`."""

    name: str
    """Key of `KINDS`."""
    index: int
    place: str
    """Torch's name of where the operator's tensors lie."""
    maps_answers: bool
    """Answers are copied into memory that the judge maps, before the child says "done"."""

    def begin(self, *, reduced: bool) -> None:
        """Makes the context; whether products of float32 may be reduced to TF32."""

    def new(self, size: int) -> Memory:
        """Memory that another process can map."""

    def private(self, size: int) -> Memory:
        """Memory of this process alone."""

    def attach(self, fd: int, size: int) -> Memory:
        """The memory behind another process's descriptor."""

    def gate(self, memory: HostMemory) -> Callable[[int], None] | None:
        """What makes the launching stream wait until the first word reaches a number.

        None where calls cannot be queued ahead.
        """

    def wait(self) -> None:
        """Until everything that this process has launched is done, on every stream."""

    def flush(self) -> None:
        """Caches hold nothing of what was computed on before; waits."""

    def nodes(self) -> tuple[str, ...]:
        """Device nodes that a child must see."""

    def cache_bytes(self) -> float | None:
        """Of the last-level cache; None: the host's."""

    def identity(self) -> dict[str, str]:
        """Name, unique number and driver: what a number depends on."""

    def state(self) -> dict[str, str]:
        """Clocks, temperature, power and throttling as they are now."""

    def used_bytes(self) -> int:
        """Of the device's memory, by everybody, this process's own tensors left out."""

    def users(self) -> frozenset[int]:
        """Numbers of the processes that hold a context, as this host counts them."""

    def healthy(self) -> bool:
        """Whether a kernel with a known answer gives it."""


class Host:
    """The CPU; also the seam for devices to which tensors are staged from the host."""

    name = "host"
    index = 0
    place = "cpu"
    maps_answers = False

    def begin(self, *, reduced: bool) -> None:
        pass

    def new(self, size: int) -> Memory:
        return HostMemory.new(size)

    def private(self, size: int) -> Memory:
        return HostMemory.new(size)

    def attach(self, fd: int, size: int) -> Memory:
        memory = HostMemory(fd, size)
        memory.close()
        return memory

    def gate(self, memory: HostMemory) -> Callable[[int], None] | None:  # noqa: ARG002
        return None

    def wait(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def nodes(self) -> tuple[str, ...]:
        return ()

    def cache_bytes(self) -> float | None:
        return None

    def identity(self) -> dict[str, str]:
        return {}

    def state(self) -> dict[str, str]:
        return {}

    def used_bytes(self) -> int:
        return 0

    def users(self) -> frozenset[int]:
        return frozenset()

    def healthy(self) -> bool:
        return True


class Staged(Host):
    """The CPU where no process may read another's memory, or a device that torch does not know."""

    name = "staged"
    maps_answers = True


def _staged(_: int) -> Kind:
    return Staged()


def _cuda(index: int) -> Kind:
    from targets.remote.cuda import Cuda

    return Cuda(index)


HOST: Kind = Host()
KINDS: dict[str, Callable[[int], Kind]] = {"cuda": _cuda, "staged": _staged}
"""By name; all else is the host."""
OF_TARGET = {"nvidia": "cuda"}
"""The others have their tensors on the host, where the judge reads them."""


def present() -> bool:
    """Whether this host has a device that may not be touched before a fork."""
    return any(make(0).nodes() for make in KINDS.values())


def kind_of_device(device: Device) -> Kind:
    """What the judge and the children of this device share memory with."""
    if device.execution != "hardware":
        return HOST
    return kind(OF_TARGET.get(device.target, HOST.name), device.index)


def kind(name: str, index: int) -> Kind:
    """One device of a kind."""
    return KINDS[name](index) if name in KINDS else HOST
