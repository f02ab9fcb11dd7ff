"""Wrong answers planted to see whether the comparison sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from data.records import Contract, Policy
from targets.remote.draws import DrawInput, domains_of
from targets.remote.numerics import Expected, compare, expected
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.oracle import declared, rounded, to_bfloat16, to_float8
from targets.remote.sizing import flatten, map_tensors

SCALES = (1, 4, 16, 64, 256)
"""Of the zero-mean inputs, for an operator that hides precision at some (JUDGE.md, section 2)."""
PROBED_PARAMETERS = 12
"""Of deep networks only the first ones are dropped in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A draw with its exact outputs and the reference's own."""

    draw: DrawInput
    expected: Expected
    outputs: list[object]


def judged(loaded: LoadedOperator, draw: DrawInput, contract: Contract) -> Judged | None:
    """None when the draw does not count."""
    exp = expected(loaded, draw, contract)
    if exp is None:
        return None
    return Judged(draw=draw, expected=exp, outputs=declared(loaded, draw))


def trivial(loaded: LoadedOperator, case: Judged, first: Judged, other: Judged) -> dict[str, Any]:
    """Answers that need no computation, by name; `first` and `other` are further draws."""
    answers: dict[str, list[object]] = {
        "zeros": _each(case, torch.zeros_like),
        "the answer to another input": other.outputs,
        "the input itself": _inputs_as_outputs(case),
    }
    constants = {"its mean": torch.mean, "the middle of its range": _middle}
    for words, statistic in constants.items():
        filled = zip(case.outputs, first.outputs, strict=True)
        answers[f"one constant, {words}"] = [_filled(o, f, statistic) for o, f in filled]
    axis = batch_axis(loaded, case)
    if axis is not None:
        answers["one row for the whole batch"] = _each(case, lambda t: _mean_row(t, axis))
    return answers


def batch_axis(loaded: LoadedOperator, case: Judged) -> int | None:
    """The output axis that follows the first axis of the inputs: found by changing one row."""
    inputs = case.draw.inputs
    first = next((i for i, t in enumerate(inputs) if _floating(t) and t.ndim and len(t) > 1), None)
    if first is None or not isinstance(case.outputs[0], Tensor):
        return None
    changed = inputs[first].clone()
    changed[-1] = changed[-1] * 1.5 + 1
    inputs = [*inputs[:first], changed, *inputs[first + 1 :]]
    before = case.outputs[0]
    after = declared(loaded, replace(case.draw, inputs=inputs))[0]
    if not isinstance(after, Tensor) or after.shape != before.shape:
        return None
    differs = after != before
    for axis, extent in enumerate(before.shape):
        others = [a for a in range(before.ndim) if a != axis]
        hit = differs.any(dim=others) if others else differs
        if extent > 1 and int(hit.sum()) == 1:
            return axis
    return None


def accepted(case: Judged, outputs: Any, contract: Contract) -> bool:
    """Whether the real comparison takes these outputs."""
    return compare(case.expected, outputs, contract, places=False).ok


def ignored(loaded: LoadedOperator, case: Judged, contract: Contract) -> list[str]:
    """Parameters that can be set to 0 and to 1 without being seen."""
    names = [n for n, _ in loaded.skeleton(case.draw.shape).named_parameters()]
    kept = [n for n in names[:PROBED_PARAMETERS] if case.draw.state[n].numel()]
    return [n for n in kept if _unseen(loaded, case, contract, n)]


def _unseen(loaded: LoadedOperator, case: Judged, contract: Contract, name: str) -> bool:
    for constant in (0.0, 1.0):
        value = torch.full_like(case.draw.state[name], constant)
        changed = replace(case.draw, state={**case.draw.state, name: value})
        if not accepted(case, declared(loaded, changed), contract):
            return False
    return True


def planted(
    loaded: LoadedOperator, case: Judged, redundant: list[str]
) -> Iterator[tuple[str, list[object]]]:
    """Faults that kernels really have, as outputs; dropping what is redundant is none."""
    yield "last column unwritten", _each(case, _last_unwritten)
    yield "last row unwritten", _each(case, lambda t: _last_unwritten(t.flatten()).view(t.shape))
    yield "scaled by 1.01", _each(case, lambda t: t * 1.01 if _floating(t) else t + 1)
    yield "one element wrong", _each(case, _one_wrong)
    if any(_floating(o) for o in case.outputs):
        yield "sign flipped", _each(case, torch.neg)
    biases = (n for n in case.draw.state if n.rpartition(".")[2] == "bias")
    bias = next((n for n in biases if n not in redundant), None)
    if bias is not None:
        zero = torch.zeros_like(case.draw.state[bias])
        state = {**case.draw.state, bias: zero}
        yield "bias dropped", declared(loaded, replace(case.draw, state=state))


def downgraded(loaded: LoadedOperator, case: Judged, contract: Contract) -> list[object]:
    """The reference one precision down: operands of products, else inputs and parameters."""
    rounding = one_down(case, contract)
    low = rounded(loaded, case.draw, rounding)
    pairs = zip(low, declared(loaded, case.draw), strict=True)
    if not all(torch.equal(a, b) for a, b in pairs if isinstance(a, Tensor)):
        return low
    inputs = map_tensors(rounding, case.draw.inputs)
    state = {n: rounding(v) for n, v in case.draw.state.items()}
    return declared(loaded, replace(case.draw, inputs=inputs, state=state))


def one_down(case: Judged, contract: Contract) -> Callable[[Tensor], Tensor]:
    """bfloat16 for float32 and TF32, 3 bits for half types."""
    half = any(g.dtype in ("float16", "bfloat16") for g in case.expected.goals)
    return to_float8 if half or contract.policy is Policy.HALF else to_bfloat16


def precision_decided(loaded: LoadedOperator, case: Judged, contract: Contract) -> bool:
    """Whether the downgrade is refused at any scale of the inputs."""
    return decided(loaded, case, contract) is not None


def decided(loaded: LoadedOperator, case: Judged, contract: Contract) -> Judged | None:
    """The case at the first scale at which the downgrade is refused; None where it never is."""
    for scale in SCALES:
        with suppress(OperatorFault):
            scaled = case if scale == 1 else _scaled(loaded, case, contract, scale)
            if scaled and not accepted(scaled, downgraded(loaded, scaled, contract), contract):
                return scaled
    return None


def _scaled(loaded: LoadedOperator, case: Judged, contract: Contract, scale: int) -> Judged | None:
    known = domains_of(loaded, case.draw.shape, case.draw.inputs)
    pairs = zip(case.draw.inputs, known, strict=True)
    inputs = [t * scale if _floating(t) and d.kind == "real" else t for t, d in pairs]
    name = f"{case.draw.distribution} times {scale}"
    return judged(loaded, replace(case.draw, inputs=inputs, distribution=name), contract)


def _floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _each(case: Judged, change: Callable[[Tensor], Tensor]) -> list[object]:
    return [map_tensors(lambda t: change(t).to(t.dtype), o) for o in case.outputs]


def _inputs_as_outputs(case: Judged) -> list[object]:
    """For each output the first input of its shape and dtype; zeros where there is none."""
    given = [t for t in flatten(case.draw.inputs) if isinstance(t, Tensor)]

    def same(output: Tensor) -> Tensor:
        fits = (t for t in given if t.shape == output.shape and t.dtype == output.dtype)
        return next(fits, torch.zeros_like(output))

    return _each(case, same)


def _filled(output: object, first: object, statistic: Callable[[Tensor], Tensor]) -> object:
    if not isinstance(output, Tensor) or not isinstance(first, Tensor) or not output.numel():
        return output
    finite = first.double() if not first.is_complex() else first.real.double()
    return torch.full_like(output, float(statistic(finite[torch.isfinite(finite)])))


def _middle(t: Tensor) -> Tensor:
    return (t.max() + t.min()) / 2


def _mean_row(t: Tensor, axis: int) -> Tensor:
    if t.ndim <= axis or not t.numel() or t.is_complex():
        return t
    return t.double().mean(axis, keepdim=True).to(t.dtype).expand_as(t)


def _last_unwritten(t: Tensor) -> Tensor:
    """The last index of the last axis holds what another element had."""
    wrong = t.clone()
    if t.ndim and t.shape[-1] > 1:
        wrong[..., -1] = wrong[..., 0]
    elif t.ndim:
        wrong[-1:] = 0
    return wrong if not torch.equal(wrong, t) else torch.zeros_like(t)


def _one_wrong(t: Tensor) -> Tensor:
    wrong = t.clone()
    middle = wrong.view(-1)[wrong.numel() // 2 :][:1] if wrong.is_contiguous() else wrong[:1]
    middle += 1 if not _floating(t) else middle.abs() * 0.1 + t.float().abs().mean() * 0.1
    return wrong
