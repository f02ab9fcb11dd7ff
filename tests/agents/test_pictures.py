"""A model that can see gets the pictures, another gets none; what was sent is on record by hash."""

import base64
import json
import struct
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.analyst import LlmAnalyst
from agents.canvas import BLACK, RED, Canvas
from agents.images import Image, tokens_for
from agents.llm import LlmClient
from agents.plot import HEIGHT, WIDTH, roofline
from agents.price import Price
from data.errors import MisuseError
from data.records import Metric, Mode, Profile, Request
from data.verdict import Verdict
from tasks.crew import Crew, read_crew
from tasks.generate import pictures
from tasks.preview import previewed
from tests.agents.scripted_server import ScriptedServer
from tests.agents.test_analyst import StandIn
from tests.agents.test_generator import BROKEN, RIGHT, request, row

ROOFS = {
    "peak_gb_s": 40.0,
    "peak_gflop_s": 200.0,
    "arithmetic_intensity": 0.6,
    "achieved_gflop_s": 8.0,
    "moved_mib": 8.0,
}
MESSAGES = [{"role": "system", "content": "You are"}, {"role": "user", "content": "See"}]


def profiled(**more: float) -> Profile:
    values = ROOFS | more
    metrics = (Metric(name=n, value=v, unit="", source="roofline") for n, v in values.items() if v)
    return Profile(metrics=tuple(metrics))


def asked(**more: float) -> Request:
    """An optimising step after two others that were right."""
    slow, fast = profiled(achieved_gflop_s=2.0), profiled(achieved_gflop_s=9.0)
    first = row(0, Verdict.CORRECT, "class ModelNew: a = 0", profile=slow)
    second = row(1, Verdict.CORRECT, "class ModelNew: a = 1", profile=fast)
    return replace(request(Mode.OPTIMISE, first, second, RIGHT), profile=profiled(**more))


def pixels(png: bytes) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """A PNG of our own form read back, check sums included."""
    at, found = 8, {}
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length :][:4]) == (zlib.crc32(name + data),)
        found[name], at = data, at + 12 + length
    width, height, *form = struct.unpack(">IIBBBBB", found[b"IHDR"])
    assert form == [8, 2, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def red(image: Image) -> list[tuple[int, int]]:
    """Centre of what is wholly red: the kernel's dot, a line and its words."""
    downs, rights = np.where((pixels(image.png) == RED).all(axis=2))
    return sorted(zip(rights.tolist(), downs.tolist(), strict=True))


def test_a_canvas_is_a_png_that_holds_what_was_drawn() -> None:
    """Lines reach their ends, dots lie where they should, text is black on white and is cut off."""
    canvas = Canvas(60, 30)
    canvas.line((5, 5), (50, 5), BLACK, width=3.0)
    canvas.dot((30, 20), 4, RED)
    canvas.text((52, 12), "cut off")
    canvas.line((-9, -9), (-5, 99), BLACK)
    found = pixels(canvas.png())
    assert found.shape == (30, 60, 3)
    assert tuple(found[5, 27]) == BLACK
    assert tuple(found[20, 30]) == RED
    assert tuple(found[28, 5]) == (255, 255, 255)
    assert (found[12:28, 52:] < 100).any()
    assert canvas.png() == canvas.png()


def test_the_roofline_moves_with_the_numbers() -> None:
    """A faster kernel lies higher; one that a profiler saw move more bytes has a second mark."""
    slow, fast = roofline(asked(achieved_gflop_s=4.0)), roofline(asked(achieved_gflop_s=20.0))
    assert slow is not None
    assert fast is not None
    heights = [np.mean([down for right, down in red(i) if right < 480]) for i in (slow, fast)]
    assert heights[1] < heights[0] - 30
    counted = roofline(asked(dram_bytes=30.0 * 2**20))
    assert counted is not None
    assert min(red(counted))[0] < min(red(slow))[0]
    assert pixels(slow.png).shape == (HEIGHT, WIDTH, 3)
    assert len(slow.png) < 40_000


@pytest.mark.parametrize("missing", sorted(set(ROOFS) - {"moved_mib"}))
def test_nothing_is_drawn_that_is_not_known(missing: str) -> None:
    """An operator without operations or a device without peaks has no picture."""
    assert roofline(asked(**{missing: 0.0})) is None
    assert roofline(request()) is None


async def ask(model: str, vision: bool | None = None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The user's message as it was on the wire, and what is on record of pictures."""
    image = Image(caption="roofline", png=Canvas(64, 32).png())
    with ScriptedServer(analyst=["{}"], generator=["{}"]) as server:
        client = LlmClient(model=model, api_base=server.url, vision=vision)
        call = await client.ask("analyst", MESSAGES, images=(image,))
        assert json.loads(call.prompt) == MESSAGES, "the record holds no picture"
        return server.bodies[0]["messages"][1], call.images


async def test_a_model_that_sees_gets_the_picture() -> None:
    """Text, caption, data URI: the bytes arrive whole; the record has their hash."""
    message, names = await ask("openai/gpt-4o")
    text, caption, picture = message["content"]
    assert (text["text"], caption["text"]) == ("See", "Picture 1: roofline")
    kind, _, data = picture["image_url"]["url"].partition(",")
    assert kind == "data:image/png;base64"
    assert pixels(base64.b64decode(data)).shape == (32, 64, 3)
    assert len(names) == 1
    assert names[0].startswith("roofline ")


@pytest.mark.parametrize(
    ("model", "vision", "sees"),
    [
        ("openai/o3-mini", None, False),
        ("openai/of-your-own", None, False),
        ("openai/of-your-own", True, True),
        ("openai/gpt-4o", False, False),
    ],
)
async def test_who_cannot_see_gets_text_alone(model: str, vision: bool | None, sees: bool) -> None:
    """By litellm's table, which a crew file overrules; an unknown model is asked as ever."""
    message, names = await ask(model, vision)
    assert isinstance(message["content"], list) == sees
    assert bool(names) == sees


async def test_the_analyst_shows_and_the_repair_turn_shows_again() -> None:
    """In the first of the user's messages, where it was."""
    image = Image(caption="roofline", png=Canvas(64, 32).png())
    with ScriptedServer(analyst=["prose"]) as server:
        client = LlmClient(model="openai/gpt-4o", api_base=server.url)
        await LlmAnalyst(client.ask, StandIn(), lambda _: (image,)).advise(asked())
        assert server.count == 2
        for body in server.bodies:
            kinds = [type(m["content"]) for m in body["messages"]]
            assert kinds[:2] == [str, list]
            assert set(kinds[2:]) <= {str}


def test_pictures_count_in_tokens_and_in_the_worst_case() -> None:
    """A dry run says so before anything is sent; for a blind model they cost nothing."""
    crew = Crew(kind="llm", models=("openai/gpt-4o",), roofline=True)
    price = Price(input=1e-6, output=1e-5)
    sees = LlmClient(model="openai/gpt-4o", price=price, max_tokens=1000)
    blind = replace(sees, vision=False)
    step, show = request(Mode.OPTIMISE, replace(RIGHT, build=BROKEN.build)), partial(pictures, crew)
    with_it, without = (previewed(client, step, show) for client in (sees, blind))
    assert [n.split()[0] for n in with_it.images] == ["roofline"]
    assert without.images == ()
    assert with_it.prompt_tokens
    assert without.prompt_tokens
    more = with_it.prompt_tokens - without.prompt_tokens
    assert 700 < more < 1000
    assert with_it.worst_usd is not None
    assert without.worst_usd is not None
    assert with_it.worst_usd - without.worst_usd == pytest.approx(2e-6 * more)
    image = Image(caption="c", png=Canvas(64, 32).png())
    assert tokens_for("openai/gpt-4o-mini", [image]) > 30 * tokens_for("openai/gpt-4o", [image])


def test_a_screenshot_comes_from_beside_the_crew_file(tmp_path: Path) -> None:
    """It becomes a part of the crew, so that other pictures are another run."""
    (tmp_path / "ncu.png").write_bytes(Canvas(64, 32).png())
    file = tmp_path / "crew.toml"
    file.write_text('[images]\nroofline = true\nvision = true\nfiles = ["ncu.png"]\n')
    crew = read_crew(file).complete(Crew(kind="llm", models=("openai/x",)), tmp_path)
    assert (crew.roofline, crew.vision) == (True, True)
    (given,) = crew.given()
    assert given.png == (tmp_path / "ncu.png").read_bytes()
    assert given.caption.startswith("ncu.png")
    assert [i.caption.split()[0] for i in pictures(crew, asked())] == ["roofline", "ncu.png,"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"GIF89a", "it is no PNG"),
        (Canvas(9000, 1).png(), "at most 5000000 bytes and 8000 pixels"),
    ],
    ids=["none", "gif", "wide"],
)
def test_what_no_model_takes_is_refused_in_one_line(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    """Before anything runs."""
    if content is not None:
        (tmp_path / "x.png").write_bytes(content)
    file = tmp_path / "crew.toml"
    file.write_text('[images]\nfiles = ["x.png"]\n')
    with pytest.raises(MisuseError, match=said):
        read_crew(file).complete(Crew(), tmp_path)
