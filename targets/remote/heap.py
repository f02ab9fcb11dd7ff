"""A heap that keeps the pages it has: fresh ones cost more than most of the judge's arithmetic."""

import ctypes
import mmap
import time
from contextlib import suppress
from itertools import pairwise

_MMAP_THRESHOLD, _TRIM_THRESHOLD, _TOP_PAD = -3, -1, -2
"""Of mallopt in glibc's malloc.h."""
LARGEST = 1 << 30
"""Tensors up to here come from the heap: a 32 MB one by mmap faults 8,192 times each time."""
KEPT = (1 << 31) - 1
PAD = 64 << 20
PROBE = 4 << 20
_ONES = b"\1" * (PROBE // mmap.PAGESIZE)


def keep_pages() -> None:
    """For this process, from now on; elsewhere than on glibc nothing changes."""
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, value in ((_MMAP_THRESHOLD, LARGEST), (_TRIM_THRESHOLD, KEPT), (_TOP_PAD, PAD)):
            mallopt(name, value)


def page_seconds() -> float:
    """What writing to a page costs more when it is new, on one thread; the least of a few tries.

    Of shared memory and its end included, the dearest there is: private pages need 1.1 us,
    shared ones 1.3, unmapped again 1.6.
    """
    return min(_page_seconds() for _ in range(3))


def _page_seconds() -> float:
    memory = mmap.mmap(-1, PROBE, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    times = [time.perf_counter()]
    for _ in range(2):
        memory[:: mmap.PAGESIZE] = _ONES
        times.append(time.perf_counter())
    memory.close()
    times.append(time.perf_counter())
    new, known, end = (b - a for a, b in pairwise(times))
    return max(new - known + end, 0.0) / len(_ONES)
