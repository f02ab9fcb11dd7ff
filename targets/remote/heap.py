"""A heap that keeps the pages it has: fresh ones cost more than most of the judge's arithmetic."""

import ctypes
from contextlib import suppress

_MMAP_THRESHOLD, _TRIM_THRESHOLD, _TOP_PAD = -3, -1, -2
"""Of mallopt in glibc's malloc.h."""
LARGEST = 1 << 30
"""Tensors up to here come from the heap: a 32 MB one by mmap faults 8,192 times each time."""
KEPT = (1 << 31) - 1
PAD = 64 << 20


def keep_pages() -> None:
    """For this process, from now on; elsewhere than on glibc nothing changes."""
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, value in ((_MMAP_THRESHOLD, LARGEST), (_TRIM_THRESHOLD, KEPT), (_TOP_PAD, PAD)):
            mallopt(name, value)
