"""Paired times by the judge's wall clock (JUDGE.md, section 4).

Each pair has fresh processes. Their turns alternate in mirrored blocks; who waits is frozen. Inputs
are completed at the start signal, random pieces of the answers are held before the clock stops,
and a random part of the answers is compared in full afterwards.
"""

import gc
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial

import torch

from data.records import RunStatus, Timing
from targets.remote.baseline import Choice
from targets.remote.bench import Bench
from targets.remote.cores import left_to_sides, pin
from targets.remote.course import Course
from targets.remote.heap import page_seconds
from targets.remote.lineup import Lineup
from targets.remote.output import SideFault
from targets.remote.pairs import (
    CANDIDATE,
    PARENT,
    UNSETTLED,
    UNSURE,
    PairTimes,
    cache_bytes,
    settled,
    spread,
    unsure,
)
from targets.remote.processes import minor_faults
from targets.remote.side import Side
from targets.remote.stopwatch import Answer, Given, time_message, time_null
from targets.remote.warming import burst, queueable, warm_up

CLEARLY_SLOWER = 0.8
ENOUGH_SLOW = 3
"""Pairs after which a clearly slower candidate is confirmed as such."""
FROZEN_NS = 200_000
"""Processor time below this over another's turn is the stop signal itself."""


class Race:
    """All pairs of one shape."""

    def __init__(self, bench: Bench, shape: str, choice: Choice) -> None:
        self.bench, self.shape, self.choice = bench, shape, choice
        self.course = Course(bench, shape, choice)
        self.audit, self.form = self.course.audit, self.course.form
        self.notes: list[str] = []
        self._ahead = bench.kind.maps_answers
        """Calls are launched ahead and wait at a gate."""
        self._core: int | None = None
        self._unsettled = False
        """A claim could not be asked again in time."""
        self._random = random.Random(bench.seed + 13)
        self._stood: dict[str, int] = {}
        self._page_s = page_seconds()
        makers = {name: partial(self.course.ready, name) for name in self.course.names}
        self._lineup = Lineup(makers, ahead=self.course.room())
        self._full = {0, self._random.randrange(max(1, bench.job.pairs))}
        """Pairs in which the known content is verified in full."""
        on_host = not bench.kind.maps_answers
        self._worn = max(self._full) if bench.job.thorough and on_host else None

    def begin(self, *, baselines: bool) -> int:
        """The sides of the first pairs are set up from now on; `baselines` alone at first.

        How many further sides they will have.
        """
        sure = self.bench.job.pairs if self.bench.job.thorough else 1
        return self._lineup.begin(sure, [self.choice.name] if baselines else None)

    def run(self, floor_us: float | None) -> Timing | None:
        """None when no pair could be finished in time. Raises SideFault for the candidate's."""
        gc.collect()
        self.bench.nursery.settle()
        try:
            with left_to_sides() if self.bench.kind.maps_answers else nullcontext() as self._core:
                pairs = self._settled() if self.bench.job.thorough else self._pairs()
        finally:
            self.close()
        return self._timing(pairs, floor_us) if pairs else None

    def close(self) -> None:
        """Ends what is still there of its sides."""
        self._lineup.close()
        self.bench.nursery.settle()
        self.course.free()

    def _pairs(self) -> list[PairTimes]:
        pairs: list[PairTimes] = []
        tries = 0
        took = 0.0
        while len(pairs) < self.bench.job.pairs and tries < 2 * self.bench.job.pairs:
            if tries and self.bench.left_s < 1.5 * took:
                self._note(f"shape {self.shape}: only {len(pairs)} pairs before the deadline")
                break
            tries += 1
            began = time.monotonic()
            try:
                pair = self._pair(len(pairs))
            except SideFault as fault:
                if fault.fault.status is RunStatus.TIMED_OUT and self.bench.candidates.left_s <= 0:
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
        return pairs

    def _settled(self) -> list[PairTimes]:
        pairs, self._unsettled = settled(self._pairs, self.choice.name)
        return pairs

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _hopeless(self, pairs: Sequence[PairTimes]) -> bool:
        """A first pair clearly below 1 ends the timing; where it confirms, the first few do."""
        enough = ENOUGH_SLOW if self.bench.job.thorough else 1
        slow = [p.ratio(self.choice.name, CANDIDATE) < CLEARLY_SLOWER for p in pairs]
        return len(pairs) == enough and all(slow)

    def _timing(self, pairs: Sequence[PairTimes], floor_us: float | None) -> Timing:
        base = self.choice.name
        ratio, low, high = spread(pairs, base)
        bound = self.bench.kind.maps_answers and not self._ahead and unsure(pairs, base)
        if bound or self._unsettled:
            low, high = min(low, 1.0), max(high, 1.0)
            self._note(f"shape {self.shape}: {UNSURE if bound else UNSETTLED}")
        parent: tuple[float | None, float | None, float | None] = (None, None, None)
        if self.bench.job.parent_source is not None:
            parent = spread(pairs, PARENT)
        samples = tuple(s * 1e6 for p in pairs for s in p.each(CANDIDATE))
        return Timing(
            shape=self.shape,
            baseline=base,
            ratio=ratio,
            low=low,
            high=high,
            pair_ratios=tuple(p.ratio(base, CANDIDATE) for p in pairs),
            candidate_us=statistics.median(samples),
            baseline_us=statistics.median(s * 1e6 for p in pairs for s in p.each(base)),
            parent_ratio=parent[0],
            parent_low=parent[1],
            parent_high=parent[2],
            floor_us=floor_us,
            null_us=statistics.median(s * 1e6 for p in pairs for s in p.null or [0.0]),
            others_us={k: v for k, v in self.choice.times_us.items() if k != base},
            warm=self.form.sets * self.course.contents.bytes
            < (self.bench.kind.cache_bytes() or cache_bytes()),
            samples_us=samples,
            allocation=statistics.median(p.allocation(base, CANDIDATE) for p in pairs),
        )

    def _pair(self, number: int) -> PairTimes:
        with ExitStack() as stack:
            sides = self._lineup.take(stack, self.bench.job.pairs - number)
            for side in sides:
                self._warm(side, worn=number == self._worn)
            self.bench.nursery.settle()
            for side in sides:
                self._queue(side)
            if not self._ahead:
                for side in sides:
                    side.gate = None
            times = PairTimes(page_s=self._page_s)
            self._blocks(sides, times, full=number in self._full or self.audit.everywhere)
            stack.pop_all()
            for side in sides:
                self.bench.nursery.end(side)
            return times

    def _warm(self, side: Side, *, worn: bool) -> None:
        """Warm, and frozen until its turn."""
        if self._core is not None:
            pin(side.child.pid, self._core)
        with self.course.blamed(side.name):
            call_s = warm_up(side, self.form, self.course.fresh)
            if worn:
                side.loop(burst(call_s, self._random))
        side.freeze()
        self._stood[side.name] = side.child.cpu_ns()

    def _queue(self, side: Side) -> None:
        """Batches that every side can launch ahead; none where one of them cannot."""
        if not self._ahead:
            return
        side.thaw()
        with self.course.blamed(side.name):
            calls = queueable(side, self.form.batch, self.course.fresh)
        side.freeze()
        self._stood[side.name] = side.child.cpu_ns()
        self._ahead = calls > 0
        self.form = replace(self.form, batch=calls) if calls else self.course.form

    def _blocks(self, sides: Sequence[Side], times: PairTimes, *, full: bool) -> None:
        order = self._random.sample(sides, len(sides))
        total = self.form.blocks * self.form.messages
        known = self._random.randrange(total // 2, total)  # late: some candidates count calls
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the judge's own idle OpenMP threads would spin
        gc.disable()
        try:
            for block in range(self.form.blocks):
                numbers = range(block * self.form.messages, (block + 1) * self.form.messages)
                turn = [self._given(n) for n in numbers]
                at = known - numbers.start
                if full and 0 <= at < len(turn):
                    turn[at].insert(self.audit.known, self._random)
                answers = {}
                null = self.bench.kind.maps_answers and block in (0, self.form.blocks - 1)
                for side in order:
                    with self.course.blamed(side.name):
                        answers[side.name] = self._turn(side, turn, times, null=null)
                self._agree(turn, answers)
                order.reverse()
            if not self.bench.kind.maps_answers:
                times.null.append(self._null(sides[1]))
        finally:
            gc.enable()
            torch.set_num_threads(threads)

    def _given(self, number: int) -> Given:
        return Given(number % self.form.sets, self.course.fresh(self.form.batch))

    def _agree(self, turn: Sequence[Given], answers: dict[str, list[Answer]]) -> None:
        base = answers[self.choice.name]
        for given, mine, theirs in zip(turn, answers[CANDIDATE], base, strict=True):
            self.audit.sampled(given.contents, mine, theirs)

    def _turn(
        self, side: Side, turn: Sequence[Given], times: PairTimes, *, null: bool
    ) -> list[Answer]:
        """One side's turn of a block: a call to wake up, then the timed messages."""
        times.void |= side.child.cpu_ns() - self._stood[side.name] > FROZEN_NS
        side.thaw()
        side.call()
        answers = []
        faults = minor_faults(side.child.pid)
        for given in turn:
            answer = time_message(side, given, slots=self.form.slots)
            answers.append(answer)
            if side.name == CANDIDATE and given.known is not None:
                self.audit.full(side, answer, given.known)
        if null:
            without = time_null(side, turn[0].contents) / self.form.batch
            times.nulls.setdefault(side.name, []).append(without)
        side.freeze()
        self._stood[side.name] = side.child.cpu_ns()
        calls = len(turn) * self.form.batch
        faults = minor_faults(side.child.pid) - faults
        times.faults.setdefault(side.name, []).append(faults / calls)
        seconds = [a.seconds / self.form.batch for a in answers]
        times.blocks.setdefault(side.name, []).append(statistics.median(seconds))
        times.raw.setdefault(side.name, []).extend(seconds)
        return answers

    def _null(self, side: Side) -> float:
        """Seconds a call of messages, hand-over and sample alone."""
        side.thaw()
        side.call()
        contents = self.course.fresh(self.form.batch)
        taken = [time_null(side, contents) for _ in range(20)]
        return statistics.median(taken) / self.form.batch
