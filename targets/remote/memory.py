"""Memory that the judge and one child both map, or that is the judge's alone."""

import ctypes
import mmap
import os
from collections.abc import Callable, Sequence
from typing import Protocol, Self

import torch

Writes = Sequence[tuple[int, bytes]]
"""(byte offset, what to write there)."""
Spots = Sequence[tuple[int, int]]
"""(byte offset, bytes)."""


class Memory(Protocol):
    """A block of bytes on one kind of device."""

    fd: int
    """Goes to the other side; -1 when there is none or no more."""
    size: int
    flat: torch.Tensor
    """All of it as uint8."""

    def part(self, offset: int, size: int) -> torch.Tensor:
        """Bytes of it, as a storage of their own."""

    def writer(self, writes: Writes) -> Callable[[], None]:
        """What applies these writes at once; when it returns, the other side sees them."""

    def reader(self, spots: Spots) -> Callable[[], bytes]:
        """What copies these bytes at once, one after the other."""

    def close(self) -> None:
        """Gives the descriptor back; the mapping stays as long as a tensor needs it."""

    def free(self) -> None:
        """Gives all back: nothing of it may be used any more."""


class HostMemory:
    """A memory file."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd, self.size = fd, size
        self.buffer = mmap.mmap(fd, size)
        self.flat = self.part(0, size)

    @classmethod
    def new(cls, size: int) -> Self:
        fd = os.memfd_create("kforge-arena")
        os.ftruncate(fd, size)
        return cls(fd, size)

    def part(self, offset: int, size: int) -> torch.Tensor:
        return torch.frombuffer(self.buffer, dtype=torch.uint8, count=size, offset=offset)

    def writer(self, writes: Writes) -> Callable[[], None]:
        buffer = self.buffer

        def apply() -> None:
            for offset, new in writes:
                buffer[offset : offset + len(new)] = new

        return apply

    def reader(self, spots: Spots) -> Callable[[], bytes]:
        buffer = self.buffer
        return lambda: b"".join(buffer[a : a + n] for a, n in spots)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def free(self) -> None:
        self.close()


class TensorMemory:
    """Memory of a torch device as one tensor: reads and writes are one kernel each."""

    def __init__(self, flat: torch.Tensor, wait: Callable[[], None], fd: int = -1) -> None:
        self.fd, self.size, self.flat = fd, flat.numel(), flat
        self._wait = wait
        """Until this process has written: another one reads, which no stream orders."""

    def part(self, offset: int, size: int) -> torch.Tensor:
        return self.flat[offset : offset + size]

    def writer(self, writes: Writes) -> Callable[[], None]:
        flat, wait = self.flat, self._wait
        index = self._index([(a, len(new)) for a, new in writes])
        values = torch.tensor(list(b"".join(new for _, new in writes)), dtype=torch.uint8)
        values = values.to(flat.device)
        wait()

        def apply() -> None:
            flat[index] = values
            wait()

        return apply

    def reader(self, spots: Spots) -> Callable[[], bytes]:
        flat, index = self.flat, self._index(spots)
        self._wait()

        def read() -> bytes:
            held = flat[index].cpu()
            return ctypes.string_at(held.data_ptr(), held.numel())

        return read

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def free(self) -> None:
        self.close()

    def _index(self, spots: Spots) -> torch.Tensor:
        return torch.tensor([k for a, n in spots for k in range(a, a + n)], dtype=torch.int64).to(
            self.flat.device
        )
