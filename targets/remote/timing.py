"""Paired times by the judge's wall clock (JUDGE.md, section 4).

Each pair has fresh processes. Their turns alternate in mirrored blocks; who waits is frozen. Inputs
are completed at the start signal, random pieces of the answers are held before the clock stops,
and a random part of the answers is compared in full afterwards.
"""

import gc
import math
import os
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import torch

from data.records import RunStatus, Timing
from targets.remote.arena import dtype_of
from targets.remote.baseline import Choice
from targets.remote.bench import COMPILED, Bench
from targets.remote.contents import Content, Contents
from targets.remote.draws import DrawInput, parameters
from targets.remote.numerics import Expected, compare, expected
from targets.remote.processes import minor_faults
from targets.remote.side import Side, SideFault
from targets.remote.stopwatch import Answer, time_batch, time_call, time_null

T95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""Student's t for a 95 % interval of the mean of n values."""
TURN_S = 0.008
BLOCKS, FEW_BLOCKS = 8, 6
"""A pair, confirming or exploring: more pairs narrow the interval, more blocks hardly."""
PAIR_S = 1.5
"""Calls of one side and pair may take so long; fewer blocks then, never below LEAST_BLOCKS."""
LEAST_BLOCKS = 4
SINGLE_S = 0.001
"""Calls from here on go one by one; shorter ones in batches (the messages take up to 100 us)."""
BATCH = 16
SETS = 3
SETS_BYTES = 128 << 20
WARM_UP_S = 1.0
FEW_FAULTS = 64
CHECKED = 1
"""Calls of the candidate a pair that are compared in full, at random, where the job is thorough;
else one call of one pair, so that exploring stays cheap: the winner is confirmed."""
CLEARLY_SLOWER = 0.8
FROZEN_NS = 200_000
"""Processor time below this over another's turn is the stop signal itself."""
CANDIDATE, PARENT = "candidate", "parent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How calls of one shape are made."""

    sets: int
    batch: int
    """Calls a message; 1: the answer stays in place."""
    messages: int
    """A turn."""
    blocks: int


@dataclass(slots=True)
class PairTimes:
    """Seconds a call, by side: one entry a block; raw ones of the candidate."""

    blocks: dict[str, list[float]] = field(default_factory=dict)
    """Median of each turn."""
    raw: dict[str, list[float]] = field(default_factory=dict)
    null: list[float] = field(default_factory=list)
    void: bool = False

    def ratio(self, over: str, under: str) -> float:
        """Median over the blocks of one side's time over that of another's.

        A stolen core doubles every fifth block of either side (2 cores, shared): two medians
        bear that, the median of ratios would meet it in every third.
        """
        return statistics.median(self.blocks[over]) / statistics.median(self.blocks[under])

    def ratios(self, over: str, under: str) -> list[float]:
        """One a block."""
        both = zip(self.blocks[over], self.blocks[under], strict=True)
        return [a / b for a, b in both]


def form_of(
    call_s: float, size: int, answer: Sequence[torch.Tensor], *, most: int = BLOCKS
) -> Form:
    """The form for a baseline that takes `call_s`, `size` bytes of inputs and such an answer."""
    blocks = max(LEAST_BLOCKS, min(most, int(PAIR_S / max(call_s, TURN_S))))
    if call_s >= SINGLE_S or not answer:
        sets = max(1, min(SETS, SETS_BYTES // size))
        messages = max(1, min(8, round(TURN_S / call_s)))
        return Form(sets=sets, batch=1, messages=messages, blocks=blocks)
    room = max(1, SETS_BYTES // (size + sum(t.numel() * t.element_size() for t in answer)))
    batch = max(1, min(BATCH, room, math.ceil(2 * SINGLE_S / call_s)))
    messages = max(1, min(4, round(TURN_S / 2 / (batch * call_s))))
    return Form(sets=max(batch, min(SETS, room)), batch=batch, messages=messages, blocks=blocks)


class Race:
    """All pairs of one shape."""

    def __init__(self, bench: Bench, shape: str, choice: Choice) -> None:
        self.bench, self.shape, self.choice = bench, shape, choice
        self.notes: list[str] = []
        self.contents = Contents(bench.loaded, shape, bench.seed + 7)
        self.state = parameters(bench.loaded, shape, bench.seed + 11)
        self._random = random.Random(bench.seed + 13)
        self._stood: dict[str, int] = {}
        self._pairs = 0
        self._checked_pair = self._random.randint(1, max(1, bench.job.pairs))
        self._example = _hollow(self._expected(self.contents.fresh()))
        most = BLOCKS if bench.job.thorough else FEW_BLOCKS
        self.form = form_of(choice.seconds, self.contents.bytes, self._example, most=most)

    def run(self, floor_us: float | None) -> Timing | None:
        """None when no pair could be finished in time. Raises SideFault."""
        gc.collect()
        pairs: list[PairTimes] = []
        tries = 0
        took = 0.0
        while len(pairs) < self.bench.job.pairs and tries < 2 * self.bench.job.pairs:
            if tries and self.bench.left_s < 1.5 * took:
                self.notes.append(
                    f"shape {self.shape}: only {len(pairs)} pairs before the deadline"
                )
                break
            tries += 1
            began = time.monotonic()
            try:
                pair = self._pair()
            except SideFault as fault:
                if fault.fault.status is RunStatus.TIMED_OUT and self.bench.left_s <= 0:
                    self._note(f"shape {self.shape}: the deadline ended the timing")
                    break
                raise
            took = time.monotonic() - began
            if pair.void:
                self._note(f"shape {self.shape}: a pair was void: the waiting side ran")
                continue
            pairs.append(pair)
            if self._hopeless(pairs):
                break
        return self._timing(pairs, floor_us) if pairs else None

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _hopeless(self, pairs: Sequence[PairTimes]) -> bool:
        """A first pair clearly below 1 ends the timing, except where it confirms."""
        slow = pairs[0].ratio(self.choice.name, CANDIDATE) < CLEARLY_SLOWER
        return len(pairs) == 1 and slow and not self.bench.job.thorough

    def _timing(self, pairs: Sequence[PairTimes], floor_us: float | None) -> Timing:
        base = self.choice.name
        ratio, low, high = _spread(pairs, base)
        parent: tuple[float | None, float | None, float | None] = (None, None, None)
        if self.bench.job.parent_source is not None:
            parent = _spread(pairs, PARENT)
        samples = tuple(s * 1e6 for p in pairs for s in p.raw[CANDIDATE])
        return Timing(
            shape=self.shape,
            baseline=base,
            ratio=ratio,
            low=low,
            high=high,
            pair_ratios=tuple(p.ratio(base, CANDIDATE) for p in pairs),
            candidate_us=statistics.median(samples),
            baseline_us=statistics.median(s * 1e6 for p in pairs for s in p.raw[base]),
            parent_ratio=parent[0],
            parent_low=parent[1],
            parent_high=parent[2],
            floor_us=floor_us,
            null_us=statistics.median(s * 1e6 for p in pairs for s in p.null),
            others_us={k: v for k, v in self.choice.times_us.items() if k != base},
            warm=self.form.sets * self.contents.bytes < cache_bytes(),
            samples_us=samples,
        )

    def _pair(self) -> PairTimes:
        with ExitStack() as stack:
            sides = self._sides(stack)
            for side in sides:
                self._ready(side)
            times = PairTimes()
            self._blocks(sides, times)
            return times

    def _sides(self, stack: ExitStack) -> list[Side]:
        bench, job = self.bench, self.bench.job
        sides = [stack.enter_context(bench.baseline(self.choice.name))]
        sides.append(stack.enter_context(bench.candidate(job.source)))
        if job.parent_source is not None:
            parent = stack.enter_context(bench.candidate(job.parent_source))
            parent.name = PARENT
            sides.append(parent)
        return sides

    def _ready(self, side: Side) -> None:
        """Model, inputs, a few calls; frozen afterwards."""
        compiled = side.name == COMPILED
        side.construct(self.bench.loaded.init_args(self.shape), self.state, compiled=compiled)
        side.inputs([self.contents.example] * self.form.sets)
        side.call(first=True)
        if self.form.batch > 1:
            side.outputs_to(self._example, self.form.batch)
        self._warm_up(side)
        side.freeze()
        self._stood[side.name] = side.child.cpu_ns()

    def _warm_up(self, side: Side) -> None:
        """The timed messages over all input sets until neighbours agree within a tenth.

        Pages are part of it: a fresh heap faults on every call until it is full (7 calls of
        8,192 faults each, 19 ms instead of 4, with 256 MB of it); so as long as calls fault, on.
        """
        until, last = time.monotonic() + WARM_UP_S, math.inf
        self._touch(side, until)
        while time.monotonic() < until:
            contents = self._fresh()
            took = self._message(side, contents, 0).seconds
            self.contents.recycle(contents)
            if abs(took - last) < 0.1 * took:
                return
            last = took

    def _touch(self, side: Side, until: float) -> None:
        """A call on each input set, and on until calls map no new pages."""
        number, before = 0, -FEW_FAULTS
        while time.monotonic() < until:
            now = minor_faults(side.child.pid)
            if number > self.form.sets and now - before < FEW_FAULTS:
                return
            before = now
            side.call(number % self.form.sets)
            number += 1

    def _blocks(self, sides: Sequence[Side], times: PairTimes) -> None:
        order = self._random.sample(sides, len(sides))
        total = self.form.blocks * self.form.messages
        checked = set(self._random.sample(range(total), self._checks()))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the judge's own idle OpenMP threads would spin
        gc.disable()
        try:
            for block in range(self.form.blocks):
                turn = [self._fresh() for _ in range(self.form.messages)]
                numbers = range(block * self.form.messages, (block + 1) * self.form.messages)
                for side in order:
                    self._turn(side, dict(zip(numbers, turn, strict=True)), checked, times)
                order.reverse()
                for contents in turn:
                    self.contents.recycle(contents)
            times.null.append(self._null(sides[1]))
        finally:
            gc.enable()
            torch.set_num_threads(threads)

    def _checks(self) -> int:
        """How many calls of the coming pair are compared in full."""
        self._pairs += 1
        if self.bench.job.thorough:
            return CHECKED
        return int(self._pairs == self._checked_pair)

    def _fresh(self) -> list[Content]:
        return [self.contents.fresh() for _ in range(self.form.batch)]

    def _turn(
        self,
        side: Side,
        turn: dict[int, list[Content]],
        checked: set[int],
        times: PairTimes,
    ) -> None:
        """One side's turn of a block: a call to wake up, then the timed messages by number."""
        times.void |= side.child.cpu_ns() - self._stood[side.name] > FROZEN_NS
        side.thaw()
        side.call()
        seconds = []
        for number, contents in turn.items():
            answer = self._message(side, contents, number)
            seconds.append(answer.seconds / self.form.batch)
            if side.name == CANDIDATE and number in checked:
                self._verify(side, contents, answer)
        side.freeze()
        self._stood[side.name] = side.child.cpu_ns()
        times.blocks.setdefault(side.name, []).append(statistics.median(seconds))
        times.raw.setdefault(side.name, []).extend(seconds)

    def _message(self, side: Side, contents: list[Content], number: int) -> Answer:
        """The contents go to their places; then the clock runs."""
        first = 0 if self.form.batch > 1 else number % self.form.sets
        assert side.arena is not None
        for k, content in enumerate(contents):
            content.into(side.arena, first + k)
        if self.form.batch > 1:
            return time_batch(side, contents)
        return time_call(side, contents[0], first)

    def _null(self, side: Side) -> float:
        """Seconds a call of messages, hand-over and sample alone."""
        side.thaw()
        side.call()
        batch = self.form.batch
        return statistics.median(time_null(side, batch) for _ in range(20)) / batch

    def _verify(self, side: Side, contents: list[Content], answer: Answer) -> None:
        """The answer in full, the child frozen. Raises SideFault."""
        side.freeze()
        k = self._random.randrange(len(contents))
        content = contents[k]
        content.complete()
        try:
            torch.set_num_threads(len(os.sched_getaffinity(0)))
            self._compare(side, content, answer, k)
        finally:
            torch.set_num_threads(1)
            content.withdraw()
            side.thaw()

    def _compare(self, side: Side, content: Content, answer: Answer, k: int) -> None:
        assert side.arena is not None
        if not content.untouched(side.arena, answer.first + k):
            raise SideFault(RunStatus.INPUT_CHANGED, "a timed call changed its input tensors")
        exp = self._expected(content)
        if exp is None:
            return
        outputs = answer.outputs(side, k, exp)
        if answer.pieces != answer.again(side):
            detail = "the answer of a timed call changed after it was said to be done"
            raise SideFault(RunStatus.DEFERRED, detail)
        found = compare(exp, outputs, self.bench.job.contract)
        if not found.ok:
            raise SideFault(RunStatus.WRONG, f"shape {self.shape}, a timed call: {found.located}")

    def _expected(self, content: Content) -> Expected | None:
        draw = DrawInput(
            shape=self.shape, distribution="timed", inputs=content.inputs(), state=self.state
        )
        return expected(self.bench.loaded, draw, self.bench.job.contract)


def _spread(pairs: Sequence[PairTimes], over: str) -> tuple[float, float, float]:
    """Over the pairs; over the blocks where there is only one pair."""
    if len(pairs) == 1:
        return interval(pairs[0].ratios(over, CANDIDATE))
    return interval([p.ratio(over, CANDIDATE) for p in pairs])


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median of the ratios and the 95 % interval: mean -+ t sd / sqrt(n) of their logarithms.

    >>> [round(v, 3) for v in interval([1.0, 2.0, 4.0])]
    [2.0, 0.358, 11.175]
    """
    logs = [math.log(v) for v in values]
    middle, mean = statistics.median(values), statistics.fmean(logs)
    half = T95[min(len(logs), 10)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return middle, min(middle, math.exp(mean - half)), max(middle, math.exp(mean + half))


def _hollow(exp: Expected | None) -> list[torch.Tensor]:
    """Tensors of the outputs' form; empty when one is no tensor or nothing is known."""
    if exp is None or any(goal.content is None for goal in exp.goals):
        return []
    return [torch.zeros(goal.shape, dtype=dtype_of(goal.dtype)) for goal in exp.goals]


def cache_bytes() -> float:
    """Last-level cache of this machine as the kernel lists it; 0 where it does not."""
    for index in ("index3", "index2"):
        try:
            text = Path(f"/sys/devices/system/cpu/cpu0/cache/{index}/size").read_text().strip()
        except OSError:
            continue
        return float(text.rstrip("KM")) * (1 << (20 if text.endswith("M") else 10))
    return 0.0
