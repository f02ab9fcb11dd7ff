"""Rendered convolutions agree with a float64 reference, whatever their windows."""

from pathlib import Path

import pytest
import torch

from agents.offline.axes import UncoveredError
from agents.offline.library import find
from agents.offline.template import Hints
from targets.remote.emulation import half as emulation
from targets.remote.kforge_launch import HALVES
from tests.agents.test_offline_kernels import check, compiled, graph, model
from tests.agents.test_simt import candidate

FORMS = {
    "plain": ("Conv2d(5, 13, 3)", (2, 5, 9, 37)),
    "one axis": ("Conv1d(4, 6, 5, stride=2, padding=3, dilation=2)", (3, 4, 71)),
    "three axes": ("Conv3d(3, 14, (1, 2, 3), padding=(0, 1, 2))", (2, 3, 4, 5, 33)),
    "strided": ("Conv2d(3, 24, 7, stride=(3, 2), padding=(2, 3))", (2, 3, 20, 45)),
    "dilated": ("Conv2d(3, 8, (2, 3), dilation=(2, 4), padding=5)", (3, 3, 11, 17)),
    "grouped": ("Conv2d(6, 9, 3, groups=3, bias=False)", (2, 6, 8, 8)),
    "depthwise": ("Conv2d(7, 7, (3, 1), groups=7, padding=(1, 0))", (2, 7, 6, 40)),
    "one image": ("Conv2d(16, 5, 1)", (1, 16, 5, 7)),
    "one output": ("Conv2d(3, 5, 4)", (2, 3, 4, 40)),
    "transposed": ("ConvTranspose2d(5, 13, 3)", (2, 5, 9, 37)),
    "transposed, strided": (
        "ConvTranspose2d(4, 6, (3, 5), stride=(2, 3), padding=(1, 2), dilation=(2, 1), groups=2)",
        (2, 4, 7, 33),
    ),
    "transposed, gaps": ("ConvTranspose1d(3, 5, 2, stride=5, dilation=3)", (2, 3, 19)),
    "transposed, three axes": (
        "ConvTranspose3d(4, 4, (3, 2, 5), stride=2, padding=1, output_padding=1, groups=2)",
        (2, 4, 3, 4, 18),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_convolution_is_right_at_another_size(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Borders, gaps and groups of every form are right, at a size that was not traced too."""
    form, shape = FORMS[name]
    source, operator = model("F.gelu(self.net(x)) * 2", f"self.net = nn.{form}")
    x = torch.randn(shape)
    template = find(graph(operator, x))
    assert template.family == "convolution"
    text = template.render(source, template.first(Hints()))
    candidate = compiled(text, tmp_path, monkeypatch)
    check(operator, candidate, x)
    if name != "one output":
        batch, channels, *space = shape
        more = (batch + 1 if batch > 1 else 1, channels, *(n + 2 for n in space))
        check(operator, candidate, torch.randn(more))


@pytest.mark.parametrize(
    "name",
    ["plain", "strided", "depthwise", "transposed, strided", "transposed, three axes"],
)
def test_threads_convolve_too(name: str) -> None:
    """As a sum along channels and taps, at a size that was not traced."""
    form, (batch, channels, *space) = FORMS[name]
    source, operator = model("F.gelu(self.net(x)) * 2", f"self.net = nn.{form}")
    template = find(graph(operator, torch.randn(batch, channels, *space)), "opencl")
    made = candidate(template.render(source, template.first(Hints(processor=True))))
    check(operator, made, torch.randn(batch + 1, channels, *(n + 2 for n in space)))


def test_a_convolution_of_threads_is_right_in_the_emulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CUDA form touches no strange memory at the borders."""
    monkeypatch.setitem(HALVES, "cuda", emulation.CUDA)
    source, operator = model("self.net(x)", "self.net = nn.Conv2d(4, 6, 3, padding=2, groups=2)")
    x = torch.randn(2, 4, 5, 9)
    template = find(graph(operator, x), "cuda")
    text = template.render(source, template.first(Hints()))
    check(operator, compiled(text, tmp_path, monkeypatch), x)


@pytest.mark.parametrize("tile", ["4x2", "6x4"])
def test_every_tile_of_a_convolution_is_right(
    tile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number of channels that no tile divides, narrow vectors."""
    source, operator = model("self.net(x)", "self.net = nn.Conv2d(5, 11, 3, padding=1)")
    x = torch.randn(2, 5, 7, 19)
    template = find(graph(operator, x))
    text = template.render(source, {"width": "8", "tile": tile})
    check(operator, compiled(text, tmp_path, monkeypatch), x)


@pytest.mark.parametrize(
    "expression",
    ["self.net(x).mean(1)", "self.net(torch.relu(x))", "self.net(x.transpose(2, 3))"],
)
def test_what_a_convolution_cannot_have_around_it_is_named(expression: str) -> None:
    """A reduction behind it, or an operand that is computed first, is no template's."""
    _, operator = model(expression, "self.net = nn.Conv2d(5, 11, 3)")
    with pytest.raises(UncoveredError):
        find(graph(operator, torch.randn(2, 5, 7, 19)))
