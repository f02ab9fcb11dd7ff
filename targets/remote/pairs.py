"""How the times of a pair are taken and what they say: forms of turns, ratios, intervals."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from data.verdict import FASTER_ABOVE

T95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""Student's t for a 95 % interval of the mean of n values."""
TURN_S = 0.008
BLOCKS = 6
"""A pair: more pairs narrow the interval, more blocks hardly (JUDGE.md, section 4)."""
PAIR_S = 0.05
"""Calls of one side and pair may take so long; fewer blocks then, never below LEAST_BLOCKS."""
LEAST_BLOCKS = 4
SINGLE_S = 0.001
"""Calls from here on go one by one; shorter ones in batches (the messages take up to 100 us)."""
BATCH = 16
DEVICE_TURN_S = 0.0025
DEVICE_BYTES = 8 << 30
"""Inputs and answers of one side; the staged contents take as much again."""
DEVICE_LEAST, DEVICE_MOST = 20, 128
"""Different inputs a batch where a call is short (JUDGE.md, section 4, item 10)."""
LEAST_NET = 0.02
NULL_SHARE = 0.5
"""Of a time; where calls cannot be queued ahead, more is not to be trusted."""
UNSURE = "calls are bound by their launches, so their times cannot be told apart"
UNSETTLED = "its gain may be chance, and there was no time for other pairs"
SURE = {2: 500.0, 3: 23.2, 4: 8.8, 5: 5.6, 6: 4.35, 7: 3.7, 8: 3.3, 9: 3.1, 10: 2.9}
"""Half widths of the 95 % interval in one of 99.99 %: a gain beyond that is no chance."""
FEW_PAGES = 16
"""A call that maps no more is no matter: 10 us."""
PAGE_MARGIN = 1.25
"""Of what a page costs: two threads that map at once wait for each other."""
SETS = 3
SETS_BYTES = 128 << 20
CANDIDATE, PARENT = "candidate", "parent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How calls of one shape are made."""

    sets: int
    batch: int
    """Calls a message."""
    slots: bool
    """Answers are copied into memory of the judge; otherwise the last one stays in place."""
    messages: int
    """A turn."""
    blocks: int


@dataclass(slots=True)
class PairTimes:
    """Seconds a call, by side: one entry a block; raw ones of the candidate."""

    blocks: dict[str, list[float]] = field(default_factory=dict)
    """Median of each turn."""
    raw: dict[str, list[float]] = field(default_factory=dict)
    """Each message."""
    null: list[float] = field(default_factory=list)
    """Cost of the messages, included in the times."""
    nulls: dict[str, list[float]] = field(default_factory=dict)
    """By side: null calls on a device; `ratio` and `each` are without the lower cost."""
    faults: dict[str, list[float]] = field(default_factory=dict)
    """By side: pages mapped anew a call, one entry a turn."""
    page_s: float = 0.0
    """What mapping one page takes here."""
    void: bool = False

    def ratio(self, over: str, under: str) -> float:
        """One side's time over that of another's, each the one that a third of its times keep."""
        first, second = map(self._time, (over, under))
        return self._without_pages(first, over, under) / second

    def _time(self, side: str) -> float:
        """What disturbs a time only adds to it, so a low one tells most.

        On 2 shared cores a third of the calls took twice as long as the others; relu against
        itself in 50 pairs scattered by 22 % with medians of medians, by 11 % with lower quartiles.
        """
        return lower_third(self.each(side))

    def allocation(self, over: str, under: str) -> float:
        """How much of the gain is memory that one side takes anew and the other has: a ratio."""
        first = self._time(over)
        return first / self._without_pages(first, over, under)

    def _without_pages(self, seconds: float, over: str, under: str) -> float:
        """A side's time without the pages that only it maps: reuse is legal, but not speed."""
        pages = [statistics.median(self.faults.get(name, [0.0])) for name in (over, under)]
        excess = pages[0] - pages[1]
        if excess < FEW_PAGES:
            return seconds
        return max(seconds - PAGE_MARGIN * excess * self.page_s, LEAST_NET * seconds)

    def net(self, side: str) -> list[float]:
        """Seconds a call, one entry a block."""
        return self._net(side, self.blocks[side])

    def ratios(self, over: str, under: str) -> list[float]:
        """One a block."""
        both = (self._net(name, self.blocks[name]) for name in (over, under))
        pairs = zip(*both, strict=True)
        return [self._without_pages(a, over, under) / b for a, b in pairs]

    def each(self, side: str) -> list[float]:
        """Seconds of each call."""
        return self._net(side, self.raw[side])

    def _net(self, side: str, times: Sequence[float]) -> list[float]:
        """Without the side's null call; a time that it nearly fills is not measurable."""
        if side not in self.nulls:
            return list(times)
        null = self.null_s()
        return [max(t - null, LEAST_NET * t) for t in times]

    def null_s(self) -> float:
        """What messages and copies cost a call on a device: the same for both sides.

        The lower one, since a candidate that slows its own null call would gain by it.
        """
        return min(map(statistics.median_low, self.nulls.values()), default=0.0)

    def doubt(self, over: str) -> float:
        """How far the null calls of both sides disagree, as a share of the shorter time."""
        nulls = [statistics.median_low(self.nulls.get(name, [0.0])) for name in (over, CANDIDATE)]
        times = [self._time(name) for name in (over, CANDIDATE)]
        return abs(nulls[0] - nulls[1]) / min(times)


def lower_third(values: Sequence[float]) -> float:
    """The value that a third of all are not above: of four the second.

    >>> lower_third([9.0, 1.0, 3.0, 2.0]), lower_third([5.0])
    (2.0, 5.0)
    """
    return sorted(values)[(len(values) - 1) // 3]


def form_of(call_s: float, size: int, answer: Sequence[torch.Tensor]) -> Form:
    """The form for a baseline that takes `call_s`, `size` bytes of inputs and such an answer."""
    blocks = BLOCKS if BLOCKS * max(2 * call_s, TURN_S) <= PAIR_S else LEAST_BLOCKS
    if call_s >= SINGLE_S or not answer:
        sets = max(1, min(SETS, SETS_BYTES // size))
        messages = max(1, min(8, round(TURN_S / call_s)))
        return Form(sets=sets, batch=1, slots=False, messages=messages, blocks=blocks)
    room = max(1, SETS_BYTES // (size + sum(t.numel() * t.element_size() for t in answer)))
    batch = max(1, min(BATCH, room, math.ceil(2 * SINGLE_S / call_s)))
    messages = max(1, min(4, round(TURN_S / 2 / (batch * call_s))))
    sets = max(batch, min(SETS, room))
    return Form(sets=sets, batch=batch, slots=batch > 1, messages=messages, blocks=blocks)


def device_form(call_s: float, size: int, answer: Sequence[torch.Tensor]) -> Form:
    """The same on a device whose answers the judge maps: long batches of different inputs.

    Two processes on one device take turns: each change costs about 0.2 ms, whatever they do.
    """
    room = max(1, DEVICE_BYTES // (size + sum(t.numel() * t.element_size() for t in answer)))
    least = DEVICE_LEAST if call_s < SINGLE_S else 1
    batch = max(1, min(DEVICE_MOST, room, max(least, math.ceil(DEVICE_TURN_S / call_s))))
    return Form(sets=batch, batch=batch, slots=True, messages=1, blocks=LEAST_BLOCKS)


def spread(pairs: Sequence[PairTimes], over: str) -> tuple[float, float, float]:
    """Over the pairs; over the blocks where there is only one pair. Wider by the null's doubt."""
    one = pairs[0].ratios(over, CANDIDATE) if len(pairs) == 1 else None
    middle, low, high = interval(one or [p.ratio(over, CANDIDATE) for p in pairs])
    doubt = statistics.median(p.doubt(over) for p in pairs)
    below, above = (math.hypot(math.log(bound / middle), doubt) for bound in (low, high))
    return middle, middle * math.exp(-below), middle * math.exp(above)


def settled(timed: Callable[[], list[PairTimes]], over: str) -> tuple[list[PairTimes], bool]:
    """The pairs, and whether a claim of theirs stays open.

    Where they claim a gain that may be chance, as many fresh ones decide alone. Among 40 judgements
    of equals one claims a gain by chance; hardly one does so twice.
    """
    pairs = timed()
    if not _claim_by_chance(pairs, over):
        return pairs, False
    again = timed()
    return (pairs, True) if len(again) < len(pairs) else (again, False)


def _claim_by_chance(pairs: Sequence[PairTimes], over: str) -> bool:
    if len(pairs) < 2:
        return False
    _, *bounds = spread(pairs, over)
    low, high = map(math.log, bounds)
    half = (high - low) / 2
    return low > math.log(FASTER_ABOVE) and low + half < half * SURE[min(len(pairs), 10)]


def unsure(pairs: Sequence[PairTimes], over: str) -> bool:
    """Whether null calls take more than half as long as the shorter of both times."""
    return any(
        p.null_s() > NULL_SHARE * statistics.median(p.net(n))
        for p in pairs
        for n in (over, CANDIDATE)
    )


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median of the ratios and the 95 % interval: mean -+ t sd / sqrt(n) of their logarithms.

    >>> [round(v, 3) for v in interval([1.0, 2.0, 4.0])]
    [2.0, 0.358, 11.178]
    """
    logs = [math.log(v) for v in values]
    middle, mean = statistics.median(values), statistics.fmean(logs)
    half = T95[min(len(logs), 10)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return middle, min(middle, math.exp(mean - half)), max(middle, math.exp(mean + half))


def cache_bytes() -> float:
    """Last-level cache of this machine as the kernel lists it; 0 where it does not."""
    for index in ("index3", "index2"):
        try:
            text = Path(f"/sys/devices/system/cpu/cpu0/cache/{index}/size").read_text().strip()
        except OSError:
            continue
        return float(text.rstrip("KM")) * (1 << (20 if text.endswith("M") else 10))
    return 0.0
