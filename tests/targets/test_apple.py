"""Apple: the guide's example, exports of xctrace, a launch as torch takes it."""

import ctypes
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from data.errors import MachineError
from data.records import Device
from targets import apple_launch
from targets.apple import TARGET as APPLE
from targets.remote.emulation.half import METAL
from targets.remote.kforge_launch import HALVES

CASE = Path(__file__).parent / "cases" / "apple" / "xctrace_intervals.json"
XML = json.loads(CASE.read_text())["output"]


def test_example_of_the_guide_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that the generator is shown gives what its operator gives."""
    monkeypatch.setenv("KFORGE_LAUNCH_CACHE", str(tmp_path))
    monkeypatch.setitem(HALVES, "metal", METAL)
    brief = APPLE.brief(Device(name="m4-max", target="apple", vendor="apple", arch="apple9"))
    spaces: list[dict[str, Any]] = []
    for text in (brief.example_operator, brief.example_kernel):
        space: dict[str, Any] = {}
        launcher = "from targets.remote.kforge_launch import"
        exec(text.replace("from kforge_launch import", launcher), space)
        spaces.append(space)
    ours, reference = spaces[1]["ModelNew"](700), spaces[0]["Model"](700)
    x = torch.randn(5, 700)
    torch.testing.assert_close(ours(x), reference(x))


def test_intervals_are_read_through_their_references() -> None:
    """Values shared by id count, graphics does not, a node may lean on an earlier schema."""
    found = APPLE.parse_profile(XML)
    assert [(m.name, m.value, m.unit) for m in found.metrics] == [("kernel_us", 12.5, "us")]
    assert found.remarks == ("softmax: 3 intervals, 39.0 us", "relu & scale: 1 intervals, 2.0 us")


@pytest.mark.parametrize(
    "text", [XML[:900], XML[:-8], "<a/>", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "Instruments"]
)
def test_cut_off_and_foreign_exports_are_one_clear_line(text: str) -> None:
    """What is no whole export ends in one line, and entities are never expanded."""
    with pytest.raises(MachineError) as caught:
        APPLE.parse_profile(text)
    assert "xctrace" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_launch_is_what_torch_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups times threads in all, the size of a group, and ints as wide as declared."""
    calls: list[Any] = []

    class Library:
        def relu(self, *args: Any, **words: Any) -> None:
            calls.append((args, words))

    monkeypatch.setattr(apple_launch, "_library", lambda _: Library())
    kinds = (ctypes.c_void_p, ctypes.c_uint, ctypes.c_float, ctypes.c_long)
    launch = apple_launch.METAL.bind("source", "relu", kinds)
    x = torch.zeros(3)
    launch([0, 3, 0.5, 9], (4, 2), 64, 0, (x, 3, 0.5, 9))
    words = {"threads": [256, 2, 1], "group_size": [64, 1, 1], "arg_casts": {1: "int32"}}
    assert calls == [((x, 3, 0.5, 9), words)]
    with pytest.raises(RuntimeError, match="declare a threadgroup array"):
        launch([], 1, 1, 64, ())
    with pytest.raises(RuntimeError, match="no null pointer"):
        launch([], 1, 1, 0, (None,))
