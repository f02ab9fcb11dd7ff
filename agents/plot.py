"""The roofline of an operator with its candidates, drawn for people and for models that can see.

Everything in it is a number of the profile; the picture only shows how far from which roof a kernel
is, and where the latest steps went.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agents.canvas import BLACK, BLUE, GREY, PALE, RED, Canvas, Colour, Point, extent
from agents.excerpt import brief_number
from agents.images import Image
from data.records import Iteration, Profile, Request

WIDTH, HEIGHT = 1000, 640
"""Four tiles of 512: 765 tokens."""
LEFT, RIGHT, TOP, BOTTOM = 100, 970, 70, 560
EARLIER = 4
"""Steps before this one that are shown."""
TITLE = 48
"""Characters of the title that fit."""
BY_COUNT = "by counted bytes"
LINE = 20
"""Pixels from one label to the next."""


class Surface(Protocol):
    """What can be drawn on: pixels for models, vectors for people."""

    def line(
        self, start: Point, end: Point, colour: Colour, *, width: float = 1.5, dashed: bool = False
    ) -> None: ...
    def dot(
        self, centre: Point, radius: float, colour: Colour, *, hollow: bool = False
    ) -> None: ...
    def text(self, place: Point, words: str, colour: Colour = BLACK, *, scale: int = 2) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """Where numbers lie in the picture, both axes logarithmic."""

    low: Point
    """Least intensity in flop/byte and least rate in GFLOP/s."""
    high: Point

    def at(self, intensity: float, rate: float) -> Point:
        shares = (
            math.log(value / low) / math.log(high / low)
            for value, low, high in zip((intensity, rate), self.low, self.high, strict=True)
        )
        right, up = shares
        return LEFT + right * (RIGHT - LEFT), BOTTOM - up * (BOTTOM - TOP)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """One measured candidate."""

    label: str
    intensity: float
    rate: float
    colour: Colour
    hollow: bool
    more: str = ""
    """A second line of its label."""
    aside: bool = False
    """Its label stands below it, without the rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Roof:
    """The device: GB/s and GFLOP/s."""

    bandwidth: float
    peak: float

    def over(self, intensity: float) -> float:
        """GFLOP/s that are possible at that intensity."""
        return min(self.peak, intensity * self.bandwidth)


def roofline(request: Request) -> Image | None:
    """The picture for the move's parent; None where its profile lacks a number of it."""
    profile, parent = request.profile, request.parent
    if profile is None or parent is None:
        return None
    canvas = Canvas(WIDTH, HEIGHT)
    if not draw(canvas, replace(parent, profile=profile), request.history):
        return None
    return Image(caption="roofline", png=canvas.png())


def draw(canvas: Surface, shown: Iteration, history: Sequence[Iteration]) -> bool:
    """Draws a step among earlier ones; False, and nothing, where its profile lacks a number."""
    profile = shown.profile
    if profile is None:
        return False
    bandwidth, peak = profile.value("peak_gb_s"), profile.value("peak_gflop_s")
    this = _mark(profile, f"this, step {shown.move.step}", RED, hollow=False)
    if not bandwidth or not peak or this is None:
        return False
    roof = _Roof(bandwidth=bandwidth, peak=peak)
    times = roof.over(this.intensity) / this.rate
    above = f"{1 / times:.2g}x above its roof: one of the two was measured under load"
    this = replace(this, more=f"{times:.2g}x below its roof" if times >= 1 else above)
    marks = (*_earlier(history, shown), *_counted(profile, this), this)
    _draw(canvas, roof, marks, f"Roofline of {shown.operator.name} on {shown.device.name}")
    return True


def _draw(canvas: Surface, roof: _Roof, marks: Sequence[_Mark], title: str) -> None:
    """The whole picture; the last mark is the one that it is about."""
    scene, this = _scene(roof, marks), marks[-1]
    canvas.text((LEFT, 14), title[:TITLE], scale=3)
    _axes(canvas, scene)
    _roofs(canvas, scene, roof)
    top = scene.at(this.intensity, roof.over(this.intensity))
    canvas.line(scene.at(this.intensity, this.rate), top, RED, dashed=True)
    _labels(canvas, scene, marks)
    for mark in marks:
        canvas.dot(scene.at(mark.intensity, mark.rate), 8, mark.colour, hollow=mark.hollow)


def _mark(profile: Profile, label: str, colour: Colour, *, hollow: bool) -> _Mark | None:
    """Where a profile puts its candidate; None without operations or a time."""
    intensity = profile.value("arithmetic_intensity")
    rate = profile.value("achieved_gflop_s")
    if not intensity or not rate:
        return None
    return _Mark(label=label, intensity=intensity, rate=rate, colour=colour, hollow=hollow)


def _earlier(history: Sequence[Iteration], shown: Iteration) -> Iterator[_Mark]:
    """The latest other steps that were right and timed."""
    others = [i for i in history if i.profile and i.candidate_id != shown.candidate_id]
    for row in others[-EARLIER:]:
        assert row.profile is not None
        mark = _mark(row.profile, f"step {row.move.step}", BLUE, hollow=True)
        if mark is not None:
            yield mark


def _counted(profile: Profile, this: _Mark) -> Iterator[_Mark]:
    """The kernel by the bytes that a profiler counted: left of it lies traffic without need."""
    counted, needed = profile.value("dram_bytes"), profile.value("moved_mib")
    if counted and needed:
        intensity = this.intensity * needed * 2**20 / counted
        yield replace(this, label=BY_COUNT, intensity=intensity, hollow=True, aside=True)


def _scene(roof: _Roof, marks: Sequence[_Mark]) -> _Scene:
    """Room for the ridge and all marks."""
    intensities = [roof.peak / roof.bandwidth, *(m.intensity for m in marks)]
    rates = [roof.peak, *(m.rate for m in marks)]
    return _Scene(
        low=(min(intensities) / 8, min(rates) / 5),
        high=(max(intensities) * 100, max(rates) * 3),
    )


def _axes(canvas: Surface, scene: _Scene) -> None:
    for value in powers(scene.low[0], scene.high[0]):
        x, _ = scene.at(value, scene.low[1])
        canvas.line((x, TOP), (x, BOTTOM), PALE, width=1.0)
        words = f"{value:g}"
        canvas.text((x - extent(words) / 2, BOTTOM + 8), words)
    for value in powers(scene.low[1], scene.high[1]):
        _, y = scene.at(scene.low[0], value)
        canvas.line((LEFT, y), (RIGHT, y), PALE, width=1.0)
        words = f"{value:g}"
        canvas.text((LEFT - 8 - extent(words), y - 8), words)
    canvas.line((LEFT, TOP), (LEFT, BOTTOM), BLACK)
    canvas.line((LEFT, BOTTOM), (RIGHT, BOTTOM), BLACK)
    below = "arithmetic intensity: operations over necessary bytes (flop/byte)"
    canvas.text(((LEFT + RIGHT - extent(below)) / 2, BOTTOM + 38), below)
    canvas.text((LEFT + 8, TOP - 22), "GFLOP/s, both axes logarithmic", GREY)


def powers(low: float, high: float) -> Iterator[float]:
    """Powers of ten between the two."""
    for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
        yield 10.0**power


def _roofs(canvas: Surface, scene: _Scene, roof: _Roof) -> None:
    """The slope of the memory and the level of the arithmetic, with their figures."""
    ridge = scene.at(roof.peak / roof.bandwidth, roof.peak)
    start = max(scene.low[0], scene.low[1] / roof.bandwidth)
    foot = scene.at(start, start * roof.bandwidth)
    end = scene.at(scene.high[0], roof.peak)
    canvas.line(foot, ridge, BLACK, width=3.0)
    canvas.line(ridge, end, BLACK, width=3.0)
    words = f"compute roof {brief_number(roof.peak)} GFLOP/s"
    canvas.text((end[0] - extent(words) - 4, end[1] - 24), words)
    words = f"memory roof {brief_number(roof.bandwidth)} GB/s"
    middle = (foot[0] + ridge[0]) / 2, (foot[1] + ridge[1]) / 2
    beside = middle[0] - LEFT > extent(words) + 24
    place = (
        (middle[0] - extent(words) - 16, middle[1] - 20) if beside else (foot[0] + 30, BOTTOM - 24)
    )
    canvas.text(place, words)


def _labels(canvas: Surface, scene: _Scene, marks: Sequence[_Mark]) -> None:
    """Names and rates beside the marks, moved down where they would lie on each other."""
    free = float(TOP)
    for mark in sorted(marks, key=lambda m: -m.rate):
        x, y = scene.at(mark.intensity, mark.rate)
        if mark.aside:
            canvas.text((x + 10 - extent(mark.label), y + 12), mark.label, mark.colour)
            continue
        words = f"{mark.label}: {brief_number(mark.rate)} GFLOP/s"
        free = max(y - 8, free)
        for line in filter(None, (words, mark.more)):
            canvas.text((x + 16, free), line, mark.colour)
            free += LINE
