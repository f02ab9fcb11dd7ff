"""Another process's memory, read without its help."""

import ctypes
import os
from array import array
from collections.abc import Sequence
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
AT_ONCE = 1000
"""Pieces a system call: the kernel takes 1024."""


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def read(pid: int, pieces: Sequence[tuple[int, int]], into: bytearray) -> None:
    """(address, bytes) one after the other into the buffer. Raises OSError."""
    view = (ctypes.c_char * len(into)).from_buffer(into)
    base, done = ctypes.addressof(view), 0
    for first in range(0, len(pieces), AT_ONCE):
        part = pieces[first : first + AT_ONCE]
        numbers = array("Q", [n for piece in part for n in piece])
        remote = (_Vector * len(part)).from_buffer(numbers)
        size = sum(n for _, n in part)
        _read(pid, base + done, remote, size)
        done += size


def _read(pid: int, base: int, remote: Any, size: int) -> None:
    got = 0
    while got < size:
        local = _Vector(base + got, size - got)
        count = _LIBC.process_vm_readv(pid, ctypes.byref(local), 1, remote, len(remote), 0)
        if count <= 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        got += count
        if got < size:
            _advance(remote, count)


def _advance(remote: Any, count: int) -> None:
    for vector in remote:
        step = min(count, vector.length)
        vector.base = (vector.base or 0) + step
        vector.length -= step
        count -= step
