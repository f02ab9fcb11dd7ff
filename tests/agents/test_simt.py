"""Kernels of threads: right where they can run, accepted by the compiler where there is one."""

import re
import shutil
import subprocess
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from agents.offline import RuleAnalyst
from agents.offline.axes import UncoveredError
from agents.offline.library import find
from agents.offline.template import Hints, Parameters, neighbours
from data.records import Candidate, Iteration, Mode
from targets import sycl
from targets.remote.emulation import half as emulation
from targets.remote.emulation.half import METAL
from targets.remote.kforge_launch import HALVES
from tests.agents.opencl import kernels
from tests.agents.test_offline import COMPUTE_BOUND, profile, request, step
from tests.agents.test_offline_kernels import FIXED, ROWS, check, compiled, graph, model

PRODUCTS = {
    "epilogue": ("torch.relu(x @ self.w) * 2", "self.w = nn.Parameter(torch.randn(64, 50))"),
    "equation": (
        "torch.einsum('bl,lk->bk', x, self.w)",
        "self.w = nn.Parameter(torch.randn(64, 50))",
    ),
    "linear": ("F.gelu(self.l(x))", "self.l = nn.Linear(64, 33)"),
}


NARROW: list[Parameters] = [
    {"form": "panels", "panel": panel, "block": "48"} for panel in ("4x2", "6x4", "12x2")
]


def candidate(source: str) -> Any:
    """The class of a candidate whose kernels run through OpenCL."""
    text = re.sub(r"from kforge_launch import kernels\n", "", source)
    module = types.ModuleType("candidate_under_test")
    module.__dict__["kernels"] = kernels()
    exec(text, module.__dict__)
    return module.ModelNew


@pytest.mark.parametrize("name", ROWS)
def test_threads_agree_at_another_size(name: str) -> None:
    """A kernel made of one size is right at odd sizes and on strided input, however laid out."""
    source, operator = model(ROWS[name])
    traced = torch.randn(48, 64)
    template = find(graph(operator, traced), "opencl")
    first, narrow = template.first(Hints()), template.first(Hints(processor=True))
    torch.manual_seed(1)
    for parameters in (first, narrow, *neighbours(narrow, template.domains)[::8]):
        made = candidate(template.render(source, parameters))
        check(operator, made, traced)
        if name not in FIXED:
            check(operator, made, torch.randn(7, 131))
            check(operator, made, torch.randn(131, 35).t())
            check(operator, made, torch.randn(3, 2052))


@pytest.mark.parametrize("name", ["softmax", "several outputs", "whole", "scan", "columns"])
def test_cuda_form_agrees_in_the_emulator(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CUDA form is right on a processor, access by access: no race, nothing out of bounds."""
    monkeypatch.setitem(HALVES, "cuda", emulation.CUDA)
    source, operator = model(ROWS[name])
    template = find(graph(operator, torch.randn(48, 64)), "cuda")
    text = template.render(source, template.first(Hints()))
    made = compiled(text, tmp_path, monkeypatch)
    torch.manual_seed(1)
    check(operator, made, torch.randn(7, 131))
    check(operator, made, torch.randn(3, 1028))


@pytest.mark.parametrize("name", ["softmax", "several outputs", "whole", "scan", "columns"])
def test_metal_form_agrees_in_the_emulator(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Metal form is right on a processor, access by access: no race, nothing out of bounds."""
    monkeypatch.setitem(HALVES, "metal", METAL)
    source, operator = model(ROWS[name])
    template = find(graph(operator, torch.randn(48, 64)), "metal")
    text = template.render(source, template.first(Hints()))
    made = compiled(text, tmp_path, monkeypatch)
    torch.manual_seed(1)
    check(operator, made, torch.randn(7, 131))


def test_metal_product_agrees_in_the_emulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matrix product with its epilogue, at sizes that no tile divides."""
    monkeypatch.setitem(HALVES, "metal", METAL)
    source, operator = model(*PRODUCTS["linear"])
    template = find(graph(operator, torch.randn(48, 64)), "metal")
    text = template.render(source, template.first(Hints()))
    check(operator, compiled(text, tmp_path, monkeypatch), torch.randn(33, 64))


async def advised(
    operator: torch.nn.Module, values: dict[str, float], *, simd: str = "avx512f"
) -> list[str]:
    """All that the rules advise one after the other for the first narrow OpenCL kernel."""
    traced = graph(operator, torch.randn(48, 64))
    template = find(traced, "opencl")
    schedule = template.first(Hints(processor=True))
    made = Candidate(
        source="# 0", language="opencl", agent_kind="offline", agent_name="t", parameters=schedule,
        techniques=template.techniques(schedule),
    )  # fmt: skip
    history: tuple[Iteration, ...] = (step(made),)
    found: list[str] = []
    while True:
        asked = request(Mode.OPTIMISE, history=history, parent=made.id, graph=traced)
        assert asked.admission.card is not None
        card = replace(asked.admission.card, simd=simd)
        asked = replace(asked, admission=replace(asked.admission, card=card))
        counsel = await RuleAnalyst().advise(replace(asked, profile=profile(**values)))
        if counsel.advice is None:
            return found
        found.append(counsel.advice.technique)
        tried = replace(made, source=f"# {len(history)}")
        history += (step(tried, len(history), advice=counsel.advice, gain_over_parent=0.9),)


async def test_no_advice_is_idle_beside_the_parents_other_choices() -> None:
    """Tiles change nothing where operands are packed into panels: the gain would be noise."""
    _, operator = model(*PRODUCTS["linear"])
    assert "tile" not in await advised(operator, COMPUTE_BOUND)


async def test_sharing_a_row_among_threads_is_a_technique_on_record() -> None:
    """A change that no tag stands for says nothing about transfer."""
    _, operator = model("torch.softmax(x, -1)")
    template = find(graph(operator, torch.randn(48, 64)), "opencl")
    alone = template.first(Hints(processor=True))
    assert "parallel_inner" not in template.techniques(alone)
    assert "parallel_inner" in template.techniques({**alone, "across": "512"})


async def test_threads_share_a_row_where_they_run_side_by_side_only() -> None:
    """On a processor they take turns: the rules advise it to lanes of a GPU alone."""
    _, operator = model("torch.softmax(x, -1)")
    slow = {"bandwidth_share": 0.1}
    assert "parallel_inner" in await advised(operator, slow, simd="16 lanes")
    assert "parallel_inner" not in await advised(operator, slow)


@pytest.mark.parametrize("name", PRODUCTS)
def test_product_agrees_under_every_tile(name: str) -> None:
    """Each layout of a matrix product is right, at sizes that no tile divides too."""
    source, operator = model(*PRODUCTS[name])
    template = find(graph(operator, torch.randn(48, 64)), "opencl")
    first, narrow = template.first(Hints()), template.first(Hints(processor=True))
    for parameters in (*neighbours(first, template.domains), narrow, *NARROW):
        made = candidate(template.render(source, {**narrow, **parameters}))
        check(operator, made, torch.randn(7, 64))
        check(operator, made, torch.randn(133, 64))


@pytest.mark.skipif(sycl.sycl_library() is None, reason=f"no SYCL: {sycl.SYCL_INSTALL}")
@pytest.mark.parametrize(
    ("expression", "processor"),
    [
        ("torch.softmax(x, -1), F.gelu(x), x.argmax(-1)", True),
        ("torch.softmax(x, -1), F.gelu(x), x.argmax(-1)", False),
        ("x.cumsum(-1)", False),
    ],
)
def test_sycl_form_agrees(
    expression: str, *, processor: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SYCL form is right, with and without local memory, for reductions, places and scans."""
    source, operator = model(expression)
    template = find(graph(operator, torch.randn(48, 64)), "sycl")
    text = template.render(source, template.first(Hints(processor=processor)))
    made = compiled(text, tmp_path, monkeypatch)
    torch.manual_seed(1)
    check(operator, made, torch.randn(7, 131))
    check(operator, made, torch.randn(3, 1028))


@pytest.mark.skipif(sycl.sycl_library() is None, reason=f"no SYCL: {sycl.SYCL_INSTALL}")
def test_sycl_product_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix product with its epilogue, in panels, at sizes that no tile divides."""
    source, operator = model(*PRODUCTS["linear"])
    template = find(graph(operator, torch.randn(48, 64)), "sycl")
    text = template.render(source, template.first(Hints(processor=True)))
    check(operator, compiled(text, tmp_path, monkeypatch), torch.randn(133, 64))


@pytest.mark.parametrize("values", [[float("-inf")] * 3 + [1.0], [float("nan"), 1.0, 2.0, 3.0]])
def test_special_values_spread_as_in_the_reference(values: list[float]) -> None:
    """Masked entries give zero, NaN is never lost."""
    source, operator = model("torch.softmax(x, -1), x.amax(-1), x.argmax(-1), torch.relu(x)")
    x = torch.tensor([values * 9])
    template = find(graph(operator, x), "opencl")
    ours = candidate(template.render(source, template.first(Hints())))()(x)
    for mine, reference in zip(ours, operator()(x), strict=True):
        assert torch.equal(mine.isnan(), reference.isnan())
        assert torch.allclose(mine.nan_to_num(), reference.nan_to_num())


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_cuda_sources_compile_without_a_device(tmp_path: Path) -> None:
    """The CUDA form of all programs is accepted for a chip that is not there, without spills."""
    text = []
    for k, expression in enumerate(ROWS.values()):
        source, operator = model(expression)
        template = find(graph(operator, torch.randn(48, 64)), "cuda")
        kernel = template.render(source, template.first(Hints())).split("'''")[1]
        text.append(f"namespace n{k} {{ {kernel} }}".replace('extern "C"', ""))
    file = tmp_path / "all.cu"
    file.write_text("\n".join(dict.fromkeys(text)))
    command = ["nvcc", "-cubin", "-arch=sm_90", "-o", str(tmp_path / "all.cubin"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_unknown_language_is_not_covered() -> None:
    """A language without templates is named, not guessed."""
    with pytest.raises(UncoveredError, match="no templates in cobol"):
        find((), "cobol")


def test_one_tensor_on_both_sides_is_not_covered() -> None:
    """A Gram matrix reads one axis twice, which no nest of loops here can say."""
    _, operator = model("torch.bmm(x, x.transpose(1, 2))")
    with pytest.raises(UncoveredError):
        find(graph(operator, torch.randn(3, 8, 5)))
