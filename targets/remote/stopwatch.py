"""One timed message: inputs completed at the start, pieces of the answer held at the end.

The driver shares a process with foreign code: what is asked for after "done" could be computed
after it, and what lies ready before the start could be computed before. So a few elements of each
input come with the start signal, and where the judge looks is told to nobody.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from targets.remote.check import read
from targets.remote.contents import Content
from targets.remote.memory import Writes
from targets.remote.numerics import Expected
from targets.remote.output import Output
from targets.remote.side import Side, message

PIECES, PIECE_BYTES = 32, 256
"""32 pieces take 14 us; they miss late work of 5 % in one turn of five, in 20 turns never."""
_SECRET = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a timed message took and what was held when the clock stopped."""

    seconds: float
    first: int
    """Input set of the first call."""
    pieces: bytes
    spots: list[tuple[int, int]] = field(default_factory=list)
    """(address in the child, or offset in the slots; bytes)."""
    places: list[Output] | None = None
    """Where the outputs lie; None when they are in the slots."""

    def again(self, side: Side) -> bytes:
        """The same pieces as they are now."""
        if self.places is None:
            assert side.slots is not None
            return side.slots.memory.reader(self.spots)()
        return _held(side, self.spots)

    def outputs(self, side: Side, call: int, exp: Expected) -> list[object]:
        """All outputs of one call of the message, in full."""
        if self.places is not None:
            return read(side, self.places, exp)
        assert side.slots is not None
        width = len(exp.goals)
        return [t.clone() for t in side.slots.tensors[call * width : (call + 1) * width]]


def time_call(side: Side, content: Content, index: int) -> Answer:
    """One call; its outputs stay in the child's memory until the next."""
    start = message({"op": "call", "set": index})
    fractions = _fractions()
    assert side.arena is not None
    complete = side.arena.memory.writer(_writes([content], index))
    began = perf_counter()
    complete()
    places = side.read_answer(side.start(start))
    spots = _spots(places, fractions)
    pieces = _held(side, spots)
    return Answer(perf_counter() - began, index, pieces, spots, places)


def time_batch(side: Side, contents: Sequence[Content]) -> Answer:
    """A call for each content, each answer copied to the judge's memory before the next call."""
    return _timed_batch(side, contents, "batch")


def _timed_batch(side: Side, contents: Sequence[Content], op: str) -> Answer:
    start = message({"op": op, "calls": len(contents)})
    assert side.arena is not None
    assert side.slots is not None
    size = side.slots.size
    spots = [(int(f * max(0, size - PIECE_BYTES)), PIECE_BYTES) for f in _fractions()]
    side.blank()
    hold = side.slots.memory.reader(spots)
    complete = side.arena.memory.writer(_writes(contents, 0))
    side.kind.flush()
    began = perf_counter()
    complete()
    side.start(start)
    pieces = hold()
    return Answer(perf_counter() - began, 0, pieces, spots)


def time_null(side: Side, contents: Sequence[Content]) -> float:
    """Seconds of a message without its calls."""
    if side.slots is not None:
        return _timed_batch(side, contents, "null_batch").seconds
    start, fractions = message({"op": "null"}), _fractions()
    began = perf_counter()
    answer = side.start(start)
    _held(side, _spots(side.read_answer(answer), fractions))
    return perf_counter() - began


def _writes(contents: Sequence[Content], first: int) -> Writes:
    """The patches of sets from `first` on."""
    return [
        ((first + k) * content.staging.size + offset, new)
        for k, content in enumerate(contents)
        for offset, new, _ in content.patch
    ]


def _fractions() -> list[float]:
    """Drawn before the clock starts, in a process that the child cannot see."""
    return [_SECRET.random() for _ in range(PIECES)]


def _spots(places: Sequence[Output], fractions: Sequence[float]) -> list[tuple[int, int]]:
    """Pieces spread over the outputs."""
    full = [(p.address, size) for p in places if (size := p.nbytes)]
    spots = []
    for number, fraction in enumerate(fractions if full else ()):
        address, size = full[number % len(full)]
        piece = min(PIECE_BYTES, size)
        spots.append((address + int(fraction * (size - piece)), piece))
    return spots


def _held(side: Side, spots: Sequence[tuple[int, int]]) -> bytes:
    if not spots:
        return b""
    buffer = bytearray(sum(n for _, n in spots))
    side.read_pieces(spots, buffer)
    return bytes(buffer)
