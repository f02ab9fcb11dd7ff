"""The steps of a pair as a picture: how fast each was, which was best so far, which were wrong."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.canvas import BLACK, BLUE, GREY, PALE, RED, Point, extent
from agents.plot import Surface
from data.records import Iteration, Mode

LEFT, RIGHT, TOP, BOTTOM = 100, 820, 70, 520
WRONG = BOTTOM + 34
"""Where steps without a time stand."""
LABELS = 16
"""Steps that have room for their speed-up."""
LETTERS = 14
"""Of a level's name that fit beside it."""
MARGIN = 1.3
"""Room above the fastest and below the slowest."""
BELOW = "step and lineage; bar: 95 % interval; x: no speed-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """Where steps and speed-ups lie: steps evenly, speed-ups on a logarithmic scale."""

    last: int
    low: float
    high: float

    def at(self, step: int, speedup: float) -> Point:
        within = min(max(speedup, self.low), self.high)
        up = math.log(within / self.low) / math.log(self.high / self.low)
        return LEFT + (step + 0.5) / (self.last + 1) * (RIGHT - LEFT), BOTTOM - up * (BOTTOM - TOP)


def draw(canvas: Surface, history: Sequence[Iteration]) -> bool:
    """Draws all steps; False, and nothing, when none has a speed-up."""
    timed = [i for i in history if i.right and i.speedup]
    if not timed:
        return False
    ceiling = possible(timed[-1])
    speeds = [s for s in (*(i.speedup for i in timed), ceiling, 1.0) if s]
    scene = _Scene(
        last=max(i.move.step for i in history), low=min(speeds) / MARGIN, high=max(speeds) * MARGIN
    )
    first = timed[-1]
    canvas.text((LEFT, 14), f"Steps of {first.operator.name} on {first.device.name}"[:48], scale=3)
    canvas.text((LEFT + 8, TOP - 22), f"times as fast as {first.baseline}, logarithmic", GREY)
    _axes(canvas, scene, history)
    if ceiling:
        _level(canvas, scene, ceiling, "roofline floor")
    _level(canvas, scene, 1.0, str(first.baseline))
    _best_so_far(canvas, scene, timed)
    for iteration in timed:
        _step(canvas, scene, iteration, labelled=len(history) <= LABELS)
    return True


def possible(iteration: Iteration) -> float | None:
    """The speed-up of a kernel at its roofline floor; None where a floor is unknown."""
    timings = iteration.run.timings if iteration.run else ()
    ratios = [t.ratio * t.candidate_us / t.floor_us for t in timings if t.floor_us]
    if not ratios or len(ratios) < len(timings):
        return None
    return math.prod(ratios) ** (1 / len(ratios))


def _axes(canvas: Surface, scene: _Scene, history: Sequence[Iteration]) -> None:
    for value in _ticks(scene.low, scene.high):
        _, y = scene.at(0, value)
        words = f"{value:g}x"
        canvas.line((LEFT, y), (RIGHT, y), PALE, width=1.0)
        canvas.text((LEFT - 8 - extent(words), y - 8), words)
    canvas.line((LEFT, TOP), (LEFT, BOTTOM), BLACK)
    canvas.line((LEFT, BOTTOM), (RIGHT, BOTTOM), BLACK)
    every = 1 + scene.last // LABELS
    for iteration in history:
        step, (x, _) = iteration.move.step, scene.at(iteration.move.step, 1.0)
        if step % every == 0:
            words = f"{step}{iteration.move.lineage}"
            canvas.text((x - extent(words) / 2, BOTTOM + 8), words)
        if not (iteration.right and iteration.speedup):
            canvas.text((x - extent("x") / 2, WRONG), "x", RED)
    canvas.text(((LEFT + RIGHT - extent(BELOW)) / 2, WRONG + 28), BELOW)


def _ticks(low: float, high: float) -> Iterator[float]:
    """1, 2, 5 and their tenfold between the two."""
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        yield from (t for t in (10.0**power, 2 * 10.0**power, 5 * 10.0**power) if low < t < high)


def _level(canvas: Surface, scene: _Scene, speedup: float, words: str) -> None:
    _, y = scene.at(0, speedup)
    canvas.line((LEFT, y), (RIGHT, y), GREY, dashed=True)
    canvas.text((RIGHT + 8, y - 8), words[:LETTERS], GREY)


def _best_so_far(canvas: Surface, scene: _Scene, timed: Sequence[Iteration]) -> None:
    """Stairs; a confirmation is another measurement of the winner, not another step of them."""
    best, corner = 0.0, None
    for iteration in timed:
        if iteration.move.mode is Mode.CONFIRM:
            continue
        best = max(best, iteration.speedup or 0.0)
        here = scene.at(iteration.move.step, best)
        if corner is not None:
            canvas.line(corner, (here[0], corner[1]), BLACK)
            canvas.line((here[0], corner[1]), here, BLACK)
        corner = here


def _step(canvas: Surface, scene: _Scene, iteration: Iteration, *, labelled: bool) -> None:
    """A confirmed winner is filled and red: its number is the one that is reported."""
    assert iteration.speedup is not None
    sure = iteration.move.mode is Mode.CONFIRM
    step, colour = iteration.move.step, RED if sure else BLUE
    if iteration.speedup_low and iteration.speedup_high:
        ends = (scene.at(step, s) for s in (iteration.speedup_low, iteration.speedup_high))
        canvas.line(next(ends), next(ends), colour)
    x, y = scene.at(step, iteration.speedup)
    canvas.dot((x, y), 7, colour, hollow=not sure)
    if labelled:
        canvas.text((x + 10, y - 24), f"{iteration.speedup:.2f}x", colour)
