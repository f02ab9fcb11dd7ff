"""One timed message: inputs completed at the start, pieces of the answer held at the end.

The driver shares a process with foreign code: what is asked for after "done" could be computed
after it, and what lies ready before the start could be computed before. So a few elements of each
input come with the start signal, and where the judge looks is told to nobody.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from targets.remote.arena import Arena, dtype_of
from targets.remote.channel import message
from targets.remote.check import read
from targets.remote.contents import Content, fill, written
from targets.remote.numerics import Expected
from targets.remote.output import Output
from targets.remote.pieces import Block, Spot, fractions, spots
from targets.remote.side import Side


@dataclass(frozen=True, slots=True)
class Answer:
    """What a timed message took and what was held when the clock stopped."""

    seconds: float
    first: int
    """Input set of the first call."""
    pieces: bytes
    spots: tuple[Spot, ...]
    """Addresses in the child, or in the slots."""
    places: tuple[Output, ...] | None = None
    """Where the outputs lie; None when they are in the slots."""
    queued: bool = False
    """Its calls were launched before the clock ran."""

    def again(self, side: Side) -> bytes:
        """The same pieces as they are now."""
        if self.places is not None:
            return _held(side, self.spots)
        assert side.slots is not None
        return side.slots.memory.reader([(s.address, s.size) for s in self.spots])()

    def outputs(self, side: Side, call: int, exp: Expected) -> list[object]:
        """All outputs of one call of the message, in full."""
        if self.places is not None:
            return read(side, self.places, exp)
        assert side.slots is not None
        width = len(exp.goals)
        return [t.clone() for t in side.slots.tensors[call * width : (call + 1) * width]]


class Given:
    """What one timed message computes on, and where its answer is looked at."""

    def __init__(self, index: int, contents: list[Content]) -> None:
        self.index, self.contents, self.where = index, contents, fractions()
        self.known: int | None = None
        """Which of them the oracle knows."""

    def insert(self, content: Content, rng: random.Random) -> None:
        self.known = rng.randrange(len(self.contents))
        self.contents[self.known] = content


def time_message(side: Side, given: Given, *, slots: bool) -> Answer:
    """The contents go to their places; then the clock runs."""
    if slots:
        return _timed_batch(side, given.contents, given.where, "batch")
    _fill(side, given.contents, given.index)
    return _time_call(side, given.contents[0], given.index, given.where)


def _fill(side: Side, contents: Sequence[Content], first: int) -> None:
    assert side.arena is not None
    fill(contents, side.arena, first)


def _time_call(side: Side, content: Content, index: int, where: Sequence[float]) -> Answer:
    """One call; its outputs stay in the child's memory until the next."""
    start = message({"op": "call", "set": index})
    assert side.arena is not None
    complete = side.arena.memory.writer(written([content], index))
    began = perf_counter()
    complete()
    places = tuple(side.read_answer(side.start(start)))
    looked = spots([_block(p) for p in places], where)
    pieces = _held(side, looked)
    return Answer(perf_counter() - began, index, pieces, tuple(looked), places)


def _timed_batch(
    side: Side, contents: Sequence[Content], where: Sequence[float], op: str
) -> Answer:
    """A call for each content, each answer copied to the judge's memory before the next call.

    With a gate the calls are launched before the contents come.
    """
    assert side.arena is not None
    assert side.slots is not None
    header: dict[str, object] = {"op": op, "calls": len(contents)}
    if side.gate is not None:
        header["gate"] = side.gate.shut()
    start = message(header)
    looked = spots(_slot_blocks(side.slots)[: len(contents) * side.width], where)
    hold = side.slots.memory.reader([(s.address, s.size) for s in looked])
    complete = side.arena.memory.writer(written(contents, 0))
    sent = perf_counter()
    queued = side.gate is not None and side.queue(start)
    if op == "batch":
        _fill(side, contents, 0)
    side.blank()
    side.kind.flush()
    if side.gate is None:
        began = perf_counter()
        complete()
        side.start(start)
    else:
        side.expect_silence()
        complete()
        began = perf_counter() if queued else sent
        side.open_gate(queued=queued)
    pieces = hold()
    seconds = perf_counter() - began
    return Answer(seconds, 0, pieces, tuple(looked), queued=queued)


def time_null(side: Side, contents: Sequence[Content]) -> float:
    """Seconds of a message without its calls."""
    where = fractions()
    if side.slots is not None:
        return _timed_batch(side, contents, where, "null_batch").seconds
    start = message({"op": "null"})
    began = perf_counter()
    answer = side.start(start)
    _held(side, spots([_block(p) for p in side.read_answer(answer)], where))
    return perf_counter() - began


def _block(place: Output) -> Block:
    return Block(place.address, place.nbytes, place.dtype)


def _slot_blocks(slots: Arena) -> list[Block]:
    places = [(p, dtype_of(p.dtype)) for p in slots.places]
    return [Block(p.offset, p.span * dtype.itemsize, dtype) for p, dtype in places]


def _held(side: Side, looked: Sequence[Spot]) -> bytes:
    if not looked:
        return b""
    buffer = bytearray(sum(s.size for s in looked))
    side.read_pieces([(s.address, s.size) for s in looked], buffer)
    return bytes(buffer)
