"""What a side does before its times count."""

import math
import random
import time
from collections.abc import Callable

from targets.remote.contents import Content
from targets.remote.pairs import DEVICE_LEAST, Form
from targets.remote.processes import minor_faults
from targets.remote.side import Side
from targets.remote.stopwatch import Given, time_message

WARM_UP_S = 1.0
SETTLED = 0.9
"""A message that takes more than this share of the best one before no longer gets faster."""
FEW_FAULTS = 64
BURST_S = 0.5
"""Of calls before one pair of a confirmation: some go stale after so and so many (row 6)."""
Fresh = Callable[[int], list[Content]]
"""So many contents that no side has seen."""


def warm_up(side: Side, form: Form, fresh: Fresh) -> float:
    """The timed messages over all input sets until they no longer get faster; seconds a call.

    Pages are part of it: a fresh heap faults on every call until it is full (7 calls of
    8,192 faults each, 19 ms instead of 4, with 256 MB of it); so as long as calls fault, on.
    """
    until = time.monotonic() + WARM_UP_S
    steady = 1 if side.kind.maps_answers else 2  # on a device `queueable` follows
    if not side.kind.maps_answers:
        _touch(side, form, until)
    best, settled = math.inf, 0
    while time.monotonic() < until and settled < steady:
        took = time_message(side, Given(0, fresh(form.batch)), slots=form.slots).seconds
        settled = settled + 1 if took > SETTLED * best else 0
        best = min(best, took)
    return best / form.batch


def burst(call_s: float, rng: random.Random) -> int:
    """How many calls: few as likely as many, in all BURST_S at most.

    >>> burst(math.inf, random.Random(1)), 1 <= burst(1e-3, random.Random(1)) <= 500
    (1, True)
    """
    return round(math.pow(max(1.0, BURST_S / call_s), rng.random()))


def _touch(side: Side, form: Form, until: float) -> None:
    """A call on each input set, and on until calls map no new pages."""
    number, before = 0, -FEW_FAULTS
    while time.monotonic() < until:
        now = minor_faults(side.child.pid)
        if number >= form.sets and now - before < FEW_FAULTS:
            return
        before = now
        side.call(number % form.sets)
        number += 1


def queueable(side: Side, calls: int, fresh: Fresh) -> int:
    """How many calls of a message can wait at a gate, at most `calls`; 0 where none can.

    A call that waits for the device can never be queued; a device's queue has an end.
    """
    side.make_gate()
    while side.gate is not None:
        if time_message(side, Given(0, fresh(calls)), slots=True).queued:
            return calls
        if calls <= DEVICE_LEAST:
            side.gate = None
        calls = max(DEVICE_LEAST, calls // 2)
    return 0
