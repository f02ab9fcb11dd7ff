"""Whose work a candidate's answer is: one watched call, and one whose kernels do nothing.

Each is made in a child of its own. Against an adversary both are advice, against ordinary
generation they decide (JUDGE.md, section 6).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from data.records import SMALL, LibraryPolicy
from targets.remote.bench import Bench
from targets.remote.check import Asked, read
from targets.remote.draws import OFFICIAL_DRAW, DrawInput, draw, small_shape
from targets.remote.numerics import Expected, compare, expected, hollow
from targets.remote.output import SideFault
from targets.remote.products import ghosts

FALLBACK = "right although its kernels did nothing: a fallback answers instead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorship:
    """What the watched calls show."""

    ops: tuple[str, ...] = ()
    """ATen compute operators that were called."""
    authored: bool | None = None
    """Whether own code makes the answer; None where that was not seen."""
    review: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    """One watched call."""

    ops: tuple[str, ...]
    authored: bool
    wrong: str
    """What is wrong with its answer; empty when it is right."""


@contextmanager
def ghost_of(bench: Bench) -> Iterator[Path | None]:
    """A folder with the candidate's kernels, none of which does anything; None: nothing to learn.

    Where library calls are allowed it does not matter whose work the answer is. In the emulator the
    launcher itself runs the kernels, and a launch costs too much to be made twice.
    """
    job = bench.job
    allowed = job.contract.library is LibraryPolicy.ALLOWED
    if bench.own is None or allowed or not job.device.timed:
        yield None
        return
    with ghosts(bench.cache, job.device, job.source) as folder:
        yield folder


def authorship(bench: Bench, ghost: Path | None, known: Asked) -> Authorship:
    """Whose work the answer to the official inputs is; what fails here is no fault of an answer.

    `known`: a draw that was checked; it serves if it is of the shape that is looked at here.
    """
    example, exp = known
    if example.shape != _shape(bench):
        example = draw(bench.loaded, _shape(bench), OFFICIAL_DRAW, bench.seed + 3)
        exp = expected(bench.loaded, example, bench.job.contract)
    try:
        seen = _watched(bench, example, exp)
    except SideFault as fault:
        return Authorship(review=(f"its work could not be traced: {fault}"[:300],))
    if seen.wrong:
        return Authorship(ops=seen.ops, review=(f"the watched call was wrong: {seen.wrong}",))
    found = Authorship(ops=seen.ops, authored=seen.authored)
    if ghost is None or exp is None or not seen.authored:
        return found
    return _without_kernels(bench, example, exp, (found, ghost))


def _shape(bench: Bench) -> str:
    if not bench.job.device.timed:
        return small_shape(bench.loaded)
    return SMALL if SMALL in bench.loaded.shapes else bench.loaded.official


def _without_kernels(
    bench: Bench, example: DrawInput, exp: Expected, seen: tuple[Authorship, Path]
) -> Authorship:
    """Not its own when the same library calls are right without its kernels."""
    found, ghost = seen
    try:
        empty = _watched(bench, example, exp, ghost)
    except SideFault:  # it matters whether the kernels work
        return found
    if empty.wrong:
        return found
    if set(empty.ops) <= set(found.ops):
        return replace(found, authored=False)
    return replace(found, review=(FALLBACK,))


def _watched(
    bench: Bench, example: DrawInput, exp: Expected | None, ghost: Path | None = None
) -> _Watched:
    """Raises SideFault."""
    with bench.passing(bench.candidate(bench.job.source, watched=True, ghost=ghost)) as side:
        side.construct(bench.loaded.init_args(example.shape), example.state)
        side.inputs([example.inputs])
        if side.kind.maps_answers:
            side.outputs_to(hollow(exp), 1)
        places, ops, authored = side.trace(bounded=ghost is not None)
        wrong = ""
        if exp is not None:
            # A ghost is wrong nearly everywhere, and nobody asks where.
            answer, located = read(side, places, exp), ghost is None
            right = compare(exp, answer, bench.job.contract, places=located)
            wrong = "" if right.ok else right.located or "wrong"
        return _Watched(ops=ops, authored=authored, wrong=wrong)
