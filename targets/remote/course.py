"""What all sides of one shape's pairs are given: contents, parameters, memory, form of calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from data.errors import MachineError
from targets.remote.arena import Arena, pack
from targets.remote.audit import Audit
from targets.remote.baseline import Choice
from targets.remote.bench import COMPILED, Bench
from targets.remote.contents import Content, Contents
from targets.remote.draws import parameters
from targets.remote.lineup import PAIRS
from targets.remote.output import SideFault
from targets.remote.pairs import CANDIDATE, PARENT, Form, device_form, form_of
from targets.remote.side import Side

AHEAD_SHARE = 0.4
"""Of a device's memory, for sides that wait for their pair."""
LEAST_GIB = 16.0
"""Of memory that a device has where nothing is known."""


class Course:
    """Where a race is run; every side is set up here."""

    def __init__(self, bench: Bench, shape: str, choice: Choice) -> None:
        self.bench, self.shape, self.choice = bench, shape, choice
        self.contents = Contents(bench.loaded, shape, bench.seed + 7)
        self.state = parameters(bench.loaded, shape, bench.seed + 11)
        self.audit = Audit(bench.loaded, shape, bench.job.contract, self.contents)
        self.audit.learn(self.state)
        form = device_form if bench.kind.maps_answers else form_of
        self.form: Form = form(choice.seconds, self.contents.bytes, self._example())
        self._arenas: dict[str, Arena] = {}
        parent = [PARENT] if bench.job.parent_source is not None else []
        self.names = (choice.name, CANDIDATE, *parent)

    def _example(self) -> list[torch.Tensor]:
        """The form of an answer; [] where a Python value among them must stay where it is."""
        whole = self.bench.kind.maps_answers or all(t.numel() for t in self.audit.example)
        return self.audit.example if whole else []

    def room(self) -> int:
        """Pairs whose sides are set up at once: what a device's memory holds, on the host one."""
        if not self.bench.kind.maps_answers:
            return 1
        card = self.bench.card
        memory = AHEAD_SHARE * (card.memory_gib if card else LEAST_GIB) * 2**30
        answer = sum(t.numel() * t.element_size() for t in self.audit.example)
        one = len(self.names) * self.form.sets * (self.contents.bytes + answer)
        return max(1, min(PAIRS, int(memory // max(1, one))))

    def fresh(self, calls: int) -> list[Content]:
        return [self.contents.fresh() for _ in range(calls)]

    def ready(self, name: str) -> Side:
        """A fresh side, with one call behind it. Raises SideFault for the candidate's."""
        with self.blamed(name):
            side = self._begun(name)
            try:
                self._set_up(side)
            except BaseException:
                side.close()
                raise
            return side

    def _begun(self, name: str) -> Side:
        """A child that has executed its source."""
        if name == self.choice.name:
            return self.bench.baseline(name)
        job = self.bench.job
        side = self.bench.candidate(job.source if name == CANDIDATE else job.parent_source or "")
        side.name = name
        return side

    def _set_up(self, side: Side) -> None:
        """Model and inputs, one call."""
        compiled = side.name == COMPILED
        side.construct(self.bench.loaded.init_args(self.shape), self.state, compiled=compiled)
        self._place(side)
        side.call(first=True)
        if self.form.slots:
            side.outputs_to(self.audit.example, self.form.batch)

    def _place(self, side: Side) -> None:
        """The input sets, in memory that the sides of this name have in turn."""
        tensors: list[torch.Tensor] = []
        sets = [self.contents.example] * self.form.sets
        if self.bench.kind.maps_answers:
            side.inputs(sets)
            return
        args: list[list[Any]] = [[pack(a, tensors) for a in inputs] for inputs in sets]
        if side.name not in self._arenas:
            self._arenas[side.name] = Arena.holding(tensors)
        side.borrow(args, self._arenas[side.name])

    @contextmanager
    def blamed(self, name: str) -> Iterator[None]:
        """A fault of the baseline or the parent is not the candidate's: MachineError."""
        try:
            yield
        except SideFault as fault:
            if name == CANDIDATE:
                raise
            raise MachineError(f"{name} failed while it was timed: {fault}") from fault

    def free(self) -> None:
        """Memory of the input sets."""
        while self._arenas:
            self._arenas.popitem()[1].free()
