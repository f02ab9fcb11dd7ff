"""Whether timed calls answer right: one known content in full, pieces of every other call.

The oracle of a large shape takes as long as 50 calls. So it is asked once, for a content that each
pair meets at a late call nobody can foretell; every other call is held against the baseline's
answer to the same content, in the same random pieces, and goes to the oracle when it differs.
"""

import os
from collections.abc import Sequence

import torch

from data.records import Contract, RunStatus
from targets.remote.arena import dtype_of
from targets.remote.contents import Content, Contents
from targets.remote.continuous import FACTOR, Continuous
from targets.remote.draws import DrawInput
from targets.remote.numerics import Expected, compare, expected, hollow
from targets.remote.operator import LoadedOperator
from targets.remote.oracle import declared
from targets.remote.output import SideFault
from targets.remote.pieces import cut, overlaid, unlike
from targets.remote.side import Side
from targets.remote.stopwatch import Answer

TRIES = 3
"""Contents drawn until the reference is finite."""
DOUBTS = 4
"""Calls of a shape that go to the oracle and are right; more say nothing new."""


class Audit:
    """The answers of one shape's timed calls."""

    def __init__(
        self, loaded: LoadedOperator, shape: str, contract: Contract, contents: Contents
    ) -> None:
        self._loaded, self._shape, self._contract = loaded, shape, contract
        self._contents = contents
        self._doubts = 0
        self.unlike_form = False
        """The candidate's outputs lie otherwise than the baseline's: pieces cannot be compared."""

    def learn(self, state: dict[str, torch.Tensor]) -> None:
        """Asks the oracle for the known content under this state."""
        self._state = state
        for _ in range(TRIES):
            self.known = self._contents.fresh()
            self.exp = self._expected(self.known)
            if self.exp is not None:
                break
        self.example = hollow(self.exp)
        self._limit = 2 * max(map(_tolerance, self.exp.goals), default=0.0) if self.exp else 0.0

    @property
    def everywhere(self) -> bool:
        """Whether each pair must be verified in full, since pieces do not tell."""
        return self.unlike_form or self._doubts >= DOUBTS

    def full(self, side: Side, answer: Answer, call: int) -> None:
        """The answer to the known content in all elements, the child frozen. Raises SideFault."""
        if self.exp is None:
            return
        side.freeze()
        threads = torch.get_num_threads()
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        try:
            self._full(side, answer, call, self.exp)
        finally:
            torch.set_num_threads(threads)
            side.thaw()

    def _full(self, side: Side, answer: Answer, call: int, exp: Expected) -> None:
        assert side.arena is not None
        if not self.known.untouched(side.arena, answer.first + call):
            raise SideFault(RunStatus.INPUT_CHANGED, "a timed call changed its input tensors")
        outputs = answer.outputs(side, call, exp)
        if answer.pieces != answer.again(side):
            detail = "the answer of a timed call changed after it was said to be done"
            raise SideFault(RunStatus.DEFERRED, detail)
        self._right(exp, outputs)

    def sampled(self, contents: Sequence[Content], mine: Answer, theirs: Answer) -> None:
        """Held against the baseline's answer to the same contents. Raises SideFault."""
        if self.exp is None or self.everywhere:
            return
        if _form(mine) != _form(theirs) or (mine.spots and not _dense(mine)):
            self.unlike_form = True
            return
        width = len(self.exp.goals)
        dtypes = [dtype_of(self.exp.goals[s.block % width].dtype) for s in mine.spots]
        both = cut(mine.pieces, mine.spots), cut(theirs.pieces, theirs.spots)
        odd = unlike(*both, dtypes, self._limit)
        if odd:
            call = mine.spots[odd[0]].block // width if mine.places is None else 0
            self._doubt(contents[call], mine, call)

    def _doubt(self, content: Content, answer: Answer, call: int) -> None:
        """The pieces of one call against the oracle, among what the reference answers."""
        self._doubts += 1
        exp = self._expected(content)
        if exp is None:
            return
        width, outputs = len(exp.goals), declared(self._loaded, self._draw(content))
        parts = list(zip(answer.spots, cut(answer.pieces, answer.spots), strict=True))
        for number, output in enumerate(outputs):
            if not isinstance(output, torch.Tensor):
                continue
            block = number if answer.places is not None else call * width + number
            places = answer.places
            strides = places[number].strides if places else self.example[number].stride()
            given = [(s.offset, piece) for s, piece in parts if s.block == block]
            outputs[number] = overlaid(output, strides, given)
        self._right(exp, outputs)

    def _right(self, exp: Expected, outputs: Sequence[object]) -> None:
        found = compare(exp, outputs, self._contract)
        if not found.ok:
            raise SideFault(RunStatus.WRONG, f"shape {self._shape}, a timed call: {found.located}")

    def _expected(self, content: Content) -> Expected | None:
        return expected(self._loaded, self._draw(content), self._contract)

    def _draw(self, content: Content) -> DrawInput:
        return DrawInput(
            shape=self._shape, distribution="timed", inputs=content.inputs(), state=self._state
        )


def _tolerance(goal: object) -> float:
    """How far an element may honestly be off, in the output's own unit; 0 where it must agree."""
    content = getattr(goal, "content", None)
    if not isinstance(content, Continuous):
        return 0.0
    units = [content.strict.worst, content.rounded.worst if content.rounded else 0.0]
    return FACTOR * max(units) * content.exact.rms


def _form(answer: Answer) -> list[tuple[object, ...]] | None:
    if answer.places is None:
        return None
    return [(p.dtype, p.shape, p.strides) for p in answer.places]


def _dense(answer: Answer) -> bool:
    """Whether no output has gaps, whose bytes are nobody's."""
    places = answer.places or ()
    return all(p.nbytes == torch.Size(p.shape).numel() * p.dtype.itemsize for p in places)
