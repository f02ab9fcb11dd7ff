"""A second measurement of a time that is hard to believe: the candidate alone, nothing beside it.

Each of its messages holds a content that the oracle has just been asked for, so what is fast here
is right too.
"""

import random
import statistics

from targets.remote.bench import CANDIDATE
from targets.remote.course import Course
from targets.remote.stopwatch import Given, time_message
from targets.remote.warming import warm_up

MESSAGES = 5
BELOW = 0.8
"""Of the time that its bytes need; nearer to it the peak may be at fault: rounds agree to 15 %."""


def solo_us(course: Course) -> float:
    """Microseconds a call, median; all verified in full. On the host only. Raises SideFault."""
    rng, seconds = random.Random(course.bench.seed + 17), []
    try:
        with course.ready(CANDIDATE) as side:
            warm_up(side, course.form, course.fresh)
            for number in range(MESSAGES):
                course.audit.learn(course.state)
                given = Given(number % course.form.sets, course.fresh(course.form.batch))
                given.insert(course.audit.known, rng)
                answer = time_message(side, given, slots=course.form.slots)
                assert given.known is not None
                course.audit.full(side, answer, given.known)
                seconds.append(answer.seconds / course.form.batch)
    finally:
        course.free()
    return statistics.median(seconds) * 1e6


def impossible(us: float, solo: float, bytes_us: float | None) -> bool:
    """Whether neither time leaves room for moving the bytes.

    >>> impossible(50.0, 70.0, 100.0), impossible(50.0, 90.0, 100.0), impossible(1.0, 1.0, None)
    (True, False, False)
    """
    return bytes_us is not None and max(us, solo) < BELOW * bytes_us
