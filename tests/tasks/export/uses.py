"""What a user does with an exported package; `main` runs where only torch and the package are."""

import copy
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

PACKAGE = "kforge_two"


class Renamed(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """The reference's computation with its parameter under another name."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(hidden))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = a + b
        return h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * self.gain, h


class Swapped(Renamed):
    """The same shapes, another computation."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = a - b
        return h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * self.gain, h


class Modal(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Mish in training alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.mish(x) if self.training else x


class Looking(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Mish unless a value says otherwise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.mish(x) if x[0, 0] < 100 else x


class Block(nn.Module):  # type: ignore[misc]  # torch is untyped here
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(769)
        self.act = nn.Mish()
        self.other_eps = nn.LayerNorm(769, eps=1e-3)
        self.other_size = nn.LayerNorm(768)
        self.no_bias = nn.LayerNorm(769, bias=False)
        self.add = Renamed(769)
        self.swapped = Swapped(769)
        self.modal = Modal()
        self.looking = Looking()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.add(self.norm(x), x)
        return self.act(y) + self.swapped(x, y)[0]


def reached(call: Callable[..., Any], *inputs: torch.Tensor) -> list[str]:
    """The package's operators that a call reaches."""
    with torch.profiler.profile() as trace, torch.no_grad():
        call(*inputs)
    names = (event.name.partition("::") for event in trace.events())
    return [name for package, _, name in names if package == PACKAGE]


def message(kind: type[Exception], call: Callable[[], object]) -> str:
    """What the call says as it raises."""
    try:
        call()
    except kind as fault:
        return str(fault)
    raise AssertionError(f"no {kind.__name__}")


def what_is_patched(k: Any, model: nn.Module, x: torch.Tensor) -> None:
    """What computes the same, and nothing that is only alike; kernels really run."""
    names = list(model.state_dict())
    with torch.no_grad():
        expected = model(x)
    done = k.patch(model)
    found = {(p.module, p.operator) for p in done}
    wanted = {("norm", "layer_norm"), ("act", "mish"), ("add", "fused_add_rms_norm")}
    assert found == wanted, found
    assert list(model.state_dict()) == names
    assert k.patch(model) == ()
    with torch.no_grad():
        torch.testing.assert_close(model(x), expected)
        torch.testing.assert_close(
            torch.compile(model, fullgraph=True, backend="aot_eager")(x), expected
        )
    assert reached(model, x) == ["layer_norm_cpu"]  # 67 rows: of these sizes the norm's alone
    assert reached(model, x[:37]) == ["fused_add_rms_norm_cpu"]


def what_a_patched_model_still_does(k: Any, model: nn.Module, x: torch.Tensor) -> None:
    """Strides, gradients, autocast, copies, parameters that change, and back."""
    strided = torch.randn(769, 67).T
    assert reached(model.norm, strided) == ["layer_norm_cpu"]
    with torch.no_grad():
        torch.testing.assert_close(model.norm(strided), nn.functional.layer_norm(strided, (769,)))
    model(x).square().sum().backward()
    assert model.norm.weight.grad is not None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert reached(model, x) == []
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.norm.weight.mul_(3.0)
        torch.testing.assert_close(other.norm(x), 3.0 * model.norm(x))
    assert reached(other.norm, x) == ["layer_norm_cpu"]
    assert (k.unpatch(model), k.unpatch(model)) == (3, 0)
    assert reached(model, x) == []


def what_operators_refuse(k: Any, row: torch.Tensor) -> None:
    """Another dtype, shape or device, and gradients that would be lost."""
    index, positive = k.row_best(row)
    assert torch.equal(index, row.argmax(-1))
    assert positive.dtype == torch.bool
    op = torch.ops.kforge_two.row_best_cpu
    for wrong in (row.double(), row[:4], row[:4].to("meta")):
        told = message(k.UnverifiedError, partial(op, wrong))
        assert "row_best_cpu was not verified for" in told, told
    assert torch.equal(k.row_best(row[:4])[0], row[:4].argmax(-1))
    assert "no gradients" in message(k.UnverifiedError, lambda: op(row.clone().requires_grad_()))
    k.require_verified()
    told = message(k.UnverifiedError, lambda: k.row_best(row[:4]))
    assert "float32[4, 33] on cpu" in told, told
    k.require_verified(False)


def what_classes_take(k: Any) -> None:
    """The reference's constructor and keywords; sizes that no kernel was made for."""
    a, b = torch.randn(37, 769), torch.randn(37, 769)
    with torch.no_grad():
        assert k.LayerNorm(cols=769).variant is not None
        assert k.LayerNorm(5)(torch.randn(2, 5)).shape == (2, 5)
        module = k.FusedAddRmsNorm(769)
        assert reached(lambda: module(a, residual=b)) == ["fused_add_rms_norm_cpu"]
        assert torch.equal(module(a, residual=b)[1], module(residual=b, x=a)[1])


def what_happens_without_a_compiler(k: Any) -> None:
    """PyTorch computes it, with one warning; an error where that must not be."""
    os.environ["PATH"], os.environ["KFORGE_LAUNCH_CACHE"] = "", os.environ["HOME"] + "/empty"
    y = torch.randn(61, 1003)
    k.require_verified()
    assert "no C++ compiler" in message(k.UnavailableError, lambda: k.mish(y))
    k.require_verified(False)
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        for _ in range(2):
            torch.testing.assert_close(k.mish(y), nn.functional.mish(y))
    assert [w.category for w in caught] == [RuntimeWarning], caught


def main() -> None:
    """All of it, in this order."""
    torch.manual_seed(0)
    k = importlib.import_module(PACKAGE)
    assert not {"tasks", "targets", "data", "jinja2"} & set(sys.modules)
    model, x = Block(), torch.randn(67, 769)
    what_is_patched(k, model, x)
    what_a_patched_model_still_does(k, model, x)
    what_operators_refuse(k, torch.randn(5, 33))
    what_classes_take(k)
    what_happens_without_a_compiler(k)
    print("done")


if __name__ == "__main__":
    main()
