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

import torch

from data.records import RunStatus, Timing
from targets.remote.baseline import Choice
from targets.remote.bench import COMPILED, Bench
from targets.remote.contents import Content, Contents
from targets.remote.draws import DrawInput, parameters
from targets.remote.numerics import Expected, compare, expected, hollow
from targets.remote.output import SideFault
from targets.remote.pairs import (
    CANDIDATE,
    PARENT,
    PairTimes,
    cache_bytes,
    device_form,
    form_of,
    spread,
)
from targets.remote.processes import minor_faults
from targets.remote.side import Side
from targets.remote.stopwatch import Answer, time_batch, time_call, time_null

WARM_UP_S = 1.0
FEW_FAULTS = 64
CLEARLY_SLOWER = 0.8
FROZEN_NS = 200_000
"""Processor time below this over another's turn is the stop signal itself."""


class Race:
    """All pairs of one shape."""

    def __init__(self, bench: Bench, shape: str, choice: Choice) -> None:
        self.bench, self.shape, self.choice = bench, shape, choice
        self.notes: list[str] = []
        self.contents = Contents(bench.loaded, shape, bench.seed + 7, bench.kind)
        self.state = parameters(bench.loaded, shape, bench.seed + 11)
        self._random = random.Random(bench.seed + 13)
        self._stood: dict[str, int] = {}
        self._pairs = 0
        self._example = self._hollow()
        form = device_form if bench.kind.maps_answers else form_of
        self.form = form(choice.seconds, self.contents.bytes, self._example)

    def _hollow(self) -> list[torch.Tensor]:
        """The form of an answer; [] where a Python value among them must stay where it is."""
        found = hollow(self._expected(self.contents.fresh()))
        whole = self.bench.kind.maps_answers or all(t.numel() for t in found)
        return found if whole else []

    def run(self, floor_us: float | None) -> Timing | None:
        """None when no pair could be finished in time. Raises SideFault."""
        gc.collect()
        self.bench.nursery.settle()
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
        ratio, low, high = spread(pairs, base)
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
            null_us=statistics.median(s * 1e6 for p in pairs for s in (p.null or p.nulls[base])),
            others_us={k: v for k, v in self.choice.times_us.items() if k != base},
            warm=self.form.sets * self.contents.bytes < (self._cache() or cache_bytes()),
            samples_us=samples,
        )

    def _cache(self) -> float | None:
        return self.bench.kind.cache_bytes()

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
        if self.form.slots:
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
        checked = self._checked(total)
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
            if not self.bench.kind.maps_answers:
                times.null.append(self._null(sides[1]))
        finally:
            gc.enable()
            torch.set_num_threads(threads)

    def _checked(self, total: int) -> set[int]:
        """Which calls of the candidate are compared in full, drawn anew for each pair.

        A late one, since some candidates count calls; in the first pair any other one too.
        """
        late = self._random.randrange(total // 2, total)
        self._pairs += 1
        return {late, self._random.randrange(total)} if self._pairs == 1 else {late}

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
        if self.bench.kind.maps_answers:
            null = time_null(side, next(iter(turn.values()))) / self.form.batch
            times.nulls.setdefault(side.name, []).append(null)
        side.freeze()
        self._stood[side.name] = side.child.cpu_ns()
        times.blocks.setdefault(side.name, []).append(statistics.median(seconds))
        times.raw.setdefault(side.name, []).extend(seconds)

    def _message(self, side: Side, contents: list[Content], number: int) -> Answer:
        """The contents go to their places; then the clock runs."""
        first = 0 if self.form.slots else number % self.form.sets
        assert side.arena is not None
        for k, content in enumerate(contents):
            content.into(side.arena, first + k)
        if self.form.slots:
            return time_batch(side, contents)
        return time_call(side, contents[0], first)

    def _null(self, side: Side) -> float:
        """Seconds a call of messages, hand-over and sample alone."""
        side.thaw()
        side.call()
        batch = self.form.batch
        contents = self._fresh()
        taken = [time_null(side, contents) for _ in range(20)]
        self.contents.recycle(contents)
        return statistics.median(taken) / batch

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
