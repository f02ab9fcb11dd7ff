"""Wrong answers planted to see whether the comparison sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from data.records import Contract, Policy
from targets.remote.draws import DrawInput, scaled
from targets.remote.numerics import Expected, compare, expected
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.oracle import declared, rounded, to_bfloat16, to_float8, to_tf32
from targets.remote.sizing import flatten, map_tensors

SCALES = (1, 4, 16, 64, 256)
"""Of the zero-mean inputs, for an operator that hides precision or branches (JUDGE.md, 2)."""
PROBED_PARAMETERS = 12
"""Of deep networks only the first ones are dropped in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A draw with its exact outputs and the reference's own."""

    draw: DrawInput
    expected: Expected
    outputs: list[object]
    scale: float = 1.0
    """Of the draw's inputs."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """Parameters that can be set to 0 and to 1 without being seen."""

    ignored: tuple[str, ...] = ()
    """Not a bit of the output changes."""
    redundant: tuple[str, ...] = ()
    """Only roundings change: the algebra takes them away."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.ignored + self.redundant


def unseen(loaded: LoadedOperator, case: Judged, contract: Contract) -> Unseen:
    """The parameters without effect, all others randomised."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for name in probed_parameters(loaded, case):
        results = [_with(loaded, case, name, constant) for constant in (0.0, 1.0)]
        if all(accepted(case, r, contract) for r in results):
            found[all(_equal(r, case.outputs) for r in results)].append(name)
    return Unseen(ignored=tuple(found[True]), redundant=tuple(found[False]))


def probed_parameters(loaded: LoadedOperator, case: Judged) -> list[str]:
    """Names of the parameters that are dropped in turn."""
    names = [n for n, _ in loaded.skeleton(case.draw.shape).named_parameters()]
    return [n for n in names[:PROBED_PARAMETERS] if case.draw.state[n].numel()]


def _with(loaded: LoadedOperator, case: Judged, name: str, constant: float) -> list[object]:
    """The reference's outputs with one parameter constant."""
    value = torch.full_like(case.draw.state[name], constant)
    state = {**case.draw.state, name: value}
    return declared(loaded, replace(case.draw, state=state))


def _equal(one: list[object], other: list[object]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.equal(a, b) if isinstance(a, Tensor) else a == b for a, b in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A fault that kernels really have, as outputs."""

    kind: str
    name: str
    outputs: list[object]


def planted(loaded: LoadedOperator, case: Judged, unseen_: Unseen) -> Iterator[Planted]:
    """One fault after the other; dropping what is redundant is none."""
    last_row = _each(case, lambda t: _last_unwritten(t.flatten()).view(t.shape))
    wrong = _each(case, lambda t: t * 1.01 if _floating(t) else t + 1)
    yield Planted(kind="tail", name="last column unwritten", outputs=_each(case, _last_unwritten))
    yield Planted(kind="tail", name="last row unwritten", outputs=last_row)
    yield Planted(kind="scale", name="scaled by 1.01", outputs=wrong)
    yield Planted(kind="element", name="one element wrong", outputs=_each(case, _one_wrong))
    if any(_floating(o) for o in case.outputs):
        yield Planted(kind="sign", name="sign flipped", outputs=_each(case, torch.neg))
    for name in probed_parameters(loaded, case):
        if name not in unseen_.names:
            outputs = _with(loaded, case, name, 0.0)
            if not _equal(outputs, case.outputs):
                yield Planted(kind="parameter", name=f"{name} dropped", outputs=outputs)


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
    """TF32 for float32, bfloat16 for TF32, 3 bits for half types."""
    half = any(g.dtype in ("float16", "bfloat16") for g in case.expected.goals)
    if half or contract.policy is Policy.HALF:
        return to_float8
    return to_bfloat16 if contract.policy is Policy.TF32 else to_tf32


def decided(loaded: LoadedOperator, case: Judged, contract: Contract) -> Judged | None:
    """The case at the least scale at which the downgrade is refused; None where it never is."""
    for scale in SCALES:
        with suppress(OperatorFault):
            larger = case if scale == 1 else _larger(loaded, case, contract, scale)
            if larger and not accepted(larger, downgraded(loaded, larger, contract), contract):
                return larger
    return None


def _larger(loaded: LoadedOperator, case: Judged, contract: Contract, scale: int) -> Judged | None:
    found = judged(loaded, scaled(loaded, case.draw, scale), contract)
    return replace(found, scale=float(scale)) if found else None


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
