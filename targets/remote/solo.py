"""A second measurement of a time that is hard to believe: the candidate alone, nothing beside it.

Each of its messages holds a content that the oracle has just been asked for, so what is fast here
is right too.
"""

import random
import statistics

from targets.remote.bench import CANDIDATE
from targets.remote.stopwatch import Given, time_message
from targets.remote.timing import Race
from targets.remote.warming import warm_up

MESSAGES = 5
BELOW = 0.8
"""Of the time that its bytes need; nearer to it the peak may be at fault: rounds agree to 15 %."""


def solo_us(race: Race) -> float:
    """Microseconds a call, median; all verified in full. On the host only. Raises SideFault."""
    rng, seconds = random.Random(race.bench.seed + 17), []
    try:
        with race.ready(CANDIDATE) as side:
            warm_up(side, race.form, race.fresh)
            for number in range(MESSAGES):
                race.audit.learn(race.state)
                given = Given(number % race.form.sets, race.fresh(race.form.batch))
                given.insert(race.audit.known, rng)
                answer = time_message(side, given, slots=race.form.slots)
                assert given.known is not None
                race.audit.full(side, answer, given.known)
                seconds.append(answer.seconds / race.form.batch)
    finally:
        race.free()
    return statistics.median(seconds) * 1e6


def impossible(us: float, solo: float, bytes_us: float | None) -> bool:
    """Whether neither time leaves room for moving the bytes.

    >>> impossible(50.0, 70.0, 100.0), impossible(50.0, 90.0, 100.0), impossible(1.0, 1.0, None)
    (True, False, False)
    """
    return bytes_us is not None and max(us, solo) < BELOW * bytes_us
