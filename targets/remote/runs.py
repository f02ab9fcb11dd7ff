"""The outputs of the reference on one draw, run in several ways."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from data.records import Contract
from targets.remote.distributions import SPECIAL
from targets.remote.draws import DrawInput
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.oracle import ROUNDING, declared, exact, rounded
from targets.remote.sizing import flatten

NOISE = 1.0
"""Roundings of each input by which the conditioning of a special draw is measured."""
HALF_TYPES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Outputs of the reference, run in several ways."""

    draw: DrawInput
    declared: list[object]
    exact: list[object] | None
    """None where there is no float64 form."""
    noisy: list[object] | None
    rounded: list[object] | None


def run(loaded: LoadedOperator, draw: DrawInput, contract: Contract) -> Runs:
    """All runs that the contract and the draw ask for; OperatorFault when the reference fails."""
    outputs = declared(loaded, draw)
    try:
        truth: list[object] | None = exact(loaded, draw)
    except OperatorFault:
        truth = None
    if truth is not None and not _widened(outputs, truth):
        truth = None
    noisy = None
    if truth is not None and draw.distribution.partition(",")[0] in SPECIAL:
        noisy = exact(loaded, draw, noise=NOISE)
    rounding = ROUNDING.get(contract.policy)
    low = rounded(loaded, draw, rounding) if rounding and not has_half(draw, outputs) else None
    return Runs(draw=draw, declared=outputs, exact=truth, noisy=noisy, rounded=low)


def _widened(outputs: list[object], truth: list[object]) -> bool:
    """Whether the float64 run gave the same structure, in float64."""
    if len(outputs) != len(truth):
        return False
    return all(
        isinstance(t, Tensor) and t.shape == o.shape and t.dtype in _wide_types(o)
        for o, t in zip(outputs, truth, strict=True)
        if isinstance(o, Tensor)
    )


def _wide_types(output: Tensor) -> tuple[torch.dtype, ...]:
    if output.is_complex():
        return (torch.complex128,)
    return (torch.float64,) if output.is_floating_point() else (output.dtype,)


def has_half(draw: DrawInput, outputs: list[object]) -> bool:
    """Whether a half type is among the inputs and outputs."""
    leaves = [*flatten(draw.inputs), *outputs]
    return any(isinstance(t, Tensor) and t.dtype in HALF_TYPES for t in leaves)


def output_of(outputs: list[object], number: int) -> Tensor:
    """One output that is a tensor, real."""
    value = outputs[number]
    assert isinstance(value, Tensor)
    return real(value)


def real(value: Tensor) -> Tensor:
    """A complex tensor as real pairs; others as they are."""
    value = value.detach()
    return torch.view_asreal(value.resolve_conj()) if value.is_complex() else value
