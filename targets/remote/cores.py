"""Where processes run while a device is timed: what they launch costs more on some cores.

The sides take turns on one core, so that a place on the machine is no advantage; the judge has the
others.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

ENOUGH = 4
"""Cores from which on the judge leaves some to the sides."""
LEFT = 2
"""Of them: the second is often the same core once more."""


@contextmanager
def left_to_sides() -> Iterator[int | None]:
    """The core that the sides take turns on; None where there are too few."""
    all_cores = sorted(os.sched_getaffinity(0))
    if len(all_cores) < ENOUGH:
        yield None
        return
    os.sched_setaffinity(0, all_cores[:-LEFT])
    try:
        yield all_cores[-1]
    finally:
        os.sched_setaffinity(0, all_cores)


def pin(pid: int, core: int) -> None:
    """The first thread of a process stays there: it launches; its others are free."""
    with suppress(OSError):  # it has gone, which whoever asks it next will see
        os.sched_setaffinity(pid, {core})
