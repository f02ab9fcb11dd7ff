"""A pair's pictures move with the numbers, and nothing is drawn that is unknown."""

import base64
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from agents.canvas import RED
from agents.vector import Vector
from data.records import Iteration, Mode, Move, RunResult, RunStatus
from data.verdict import Verdict
from tasks import pictures, trajectory
from tests.agents.test_pictures import profiled
from tests.data.samples import confirmed, plain, timing

SVG = "{http://www.w3.org/2000/svg}"


def step(number: int, speedup: float, **other: object) -> Iteration:
    """A right step of the operator that was timed."""
    return confirmed(
        number,
        speedup,
        move=Move(mode=Mode.CREATE, step=number, lineage="a"),
        verdict=Verdict.CORRECT,
        **other,
    )


def drawn(*history: Iteration) -> ET.Element:
    """The trajectory, as a browser would read it."""
    canvas = Vector(1000, 640)
    assert trajectory.draw(canvas, history)
    return ET.fromstring(canvas.svg())


def dots(picture: ET.Element) -> list[tuple[float, float, str]]:
    """Right, down and filling of each dot."""
    return [
        (float(d.get("cx", "")), float(d.get("cy", "")), d.get("fill", ""))
        for d in picture.iter(f"{SVG}circle")
    ]


def words(picture: ET.Element) -> list[str]:
    return [t.text or "" for t in picture.iter(f"{SVG}text")]


def test_a_faster_step_lies_higher_and_a_later_one_further_right() -> None:
    """The confirmed number is the filled one; a step without a time is a cross."""
    wrong = plain(2, verdict=Verdict.WRONG, reason="wrong")
    picture = drawn(step(0, 0.5), step(1, 2.0), wrong, confirmed(3, 1.8))
    (slow, fast, sure) = dots(picture)
    assert slow[0] < fast[0] < sure[0]
    assert fast[1] < sure[1] < slow[1]
    assert [d[2] == "#{:02x}{:02x}{:02x}".format(*RED) for d in (slow, fast, sure)] == [
        False,
        False,
        True,
    ]
    assert words(picture).count("x") == 1
    assert {"0.50x", "2.00x", "1.80x", "eager"} <= set(words(picture))


def test_the_floor_is_how_fast_it_could_be() -> None:
    """A kernel of 100 us over a floor of 50 us that is 1.5 times as fast could be 3 times."""
    sure = confirmed(0, 1.5, run=RunResult(status=RunStatus.RAN, timings=(timing(floor_us=50.0),)))
    assert trajectory.possible(sure) == pytest.approx(3.0)
    assert "roofline floor" in words(drawn(sure))
    assert trajectory.possible(confirmed(0, 1.5)) is None


def test_a_long_search_fits() -> None:
    """Two hundred steps and an interval that is wider than the picture stay inside."""
    wild = [step(n, 1.0 + n % 7, speedup_low=1e-3, speedup_high=1e3) for n in range(200)]
    picture = drawn(*wild)
    for line in picture.iter(f"{SVG}line"):
        assert 0 <= float(line.get("y1", "")) <= 640
        assert 0 <= float(line.get("x2", "")) <= 1000
    assert len(words(picture)) < 60


def test_names_are_text_not_markup() -> None:
    """An operator of a model may be called anything; the picture stays one picture."""
    sly = step(0, 1.5)
    sly = replace(sly, operator=replace(sly.operator, name="</text><script>\x00\ud800"))
    assert not list(drawn(sly).iter(f"{SVG}script"))


def test_the_page_holds_its_pictures_and_asks_nobody_for_them() -> None:
    """Both are data; a pair that was never timed, or only emulated, has no page."""
    page = pictures.page([step(0, 1.2, profile=profiled()), confirmed(1, 1.5, profile=profiled())])
    found = re.findall(r"!\[(.+?)\]\(data:image/svg\+xml;base64,(\S+)\)", page)
    assert [title.split()[0] for title, _ in found] == ["Speed-up", "Roofline"]
    assert all(b"<svg" in base64.b64decode(data) for _, data in found)
    assert "](http" not in page
    assert len(page) < 40_000
    assert pictures.page([step(0, 1.2)]).count("![") == 1
    assert pictures.page([plain(0), plain(1, verdict=Verdict.WRONG)]) == ""
