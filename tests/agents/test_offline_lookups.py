"""Reads at computed places: joins, slices, look-ups, padding, windows, in C++ and in OpenCL."""

from pathlib import Path
from typing import Any

import pytest
import torch

from agents.offline.library import find
from agents.offline.template import Hints
from tests.agents.test_offline_kernels import check, compiled, graph, model
from tests.agents.test_simt import candidate

PLACES = {
    "rotary": "torch.cat((-x[:, 32:].sin(), x[:, :32] * 2, x), -1) * 3",
    "part": "x.exp().split((7, 20, 37), 1)[1] * 2",
    "steps": "(x + 1)[3:40:4]",
    "one column": "(x * x)[:, 5]",
    "stacked": "torch.stack((x, x.exp(), x + 1), 1)",
    "chosen rows": "x[(x[:, 0] * 1000).remainder(9.0).to(torch.int64) - 9].relu()",
    "gathered": "x.gather(1, (x * 1000).remainder(35.0).to(torch.int64))",
    "selected": "x.index_select(1, (x[0, :20].abs() * 7).to(torch.int64))",
    "padded": "F.pad(x.exp(), (3, 2, 1, 0), value=2.5)",
    "rolled": "x.roll((5, -3), (0, 1)) + x",
    "triangles": "torch.tril(x, 3) + torch.triu(x * 2, -1)",
}
WINDOWS = {
    "largest": "F.max_pool2d(x.relu() - x, 3, 2, 1)",
    "largest, dilated": "F.max_pool2d(x, (2, 3), (1, 2), (0, 1), (3, 2))",
    "mean": "F.avg_pool2d(x, 5, 2, 2)",
    "mean of what is there": "F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)",
    "mean, one axis": "F.avg_pool1d(x[:, :, 0], 4, 1, 2)",
    "three axes": "F.max_pool3d(x.unsqueeze(1), (1, 2, 3)) - 1",
    "one place": "F.adaptive_avg_pool2d(x, 1)",
    "divided": "F.adaptive_avg_pool2d(x, (4, 6)) * 2",
}


def rendered(expression: str, x: torch.Tensor, language: str = "cpp") -> Any:
    source, operator = model(expression)
    template = find(graph(operator, x), language)
    return template.render(source, template.first(Hints(processor=True))), operator


@pytest.mark.parametrize("name", PLACES)
def test_values_are_read_elsewhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a call moves, joins or looks up is in its place, the last incomplete vector too."""
    torch.manual_seed(3)
    x = torch.randn(48, 64)
    source, operator = rendered(PLACES[name], x)
    check(operator, compiled(source, tmp_path, monkeypatch), x)


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_right_at_their_borders(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pooling of any dimension, stride, padding and dilation; at another size where it may be."""
    x = torch.randn(2, 3, 20, 42)
    source, operator = rendered(WINDOWS[name], x)
    made = compiled(source, tmp_path, monkeypatch)
    check(operator, made, x)
    if name in ("largest", "mean", "mean of what is there"):
        check(operator, made, torch.randn(3, 5, 7, 37))


@pytest.mark.parametrize("name", ["rotary", "padded", "gathered", "mean", "largest, dilated"])
def test_threads_read_elsewhere_too(name: str) -> None:
    """One description: the kernels of threads are right as well, and rendered in every language."""
    x = torch.randn(48, 64) if name in PLACES else torch.randn(2, 3, 20, 42)
    for language in ("cuda", "hip", "sycl", "metal"):
        assert "PICK(" in rendered({**PLACES, **WINDOWS}[name], x, language)[0]
    source, operator = rendered({**PLACES, **WINDOWS}[name], x, "opencl")
    check(operator, candidate(source), x)


def test_an_index_outside_of_a_tensor_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch raises there; the kernel must not touch strange memory."""
    x = torch.arange(12.0).reshape(3, 4)
    source, _ = rendered("x[(x[:, 0]).to(torch.int64).clamp(0, 2)]", x)
    ours = compiled(source, tmp_path, monkeypatch)()(x)
    assert torch.equal(ours, x[[0, 2, 2]])
