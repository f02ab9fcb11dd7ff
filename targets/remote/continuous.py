"""Floating outputs: the limits of their errors and whether given ones keep them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from data.records import Policy
from targets.remote.deviation import (
    Deviation,
    Exact,
    all_finite,
    deviation,
    difference,
    exact_output,
)
from targets.remote.draws import DrawInput
from targets.remote.located import located
from targets.remote.oracle import EPS
from targets.remote.runs import Runs, has_half, output_of
from targets.remote.sizing import flatten

FACTOR = 64.0
"""Of the reference's own error in float32: honest kernels need up to 15, TF32 from 145 on."""
HALF_NORM, HALF_WORST = 4.0, 8.0
"""In half types and under `tf32` and `half`: honest 2.6 and 6.0, fp8 inside 5.4."""
ONE_ROUNDING = 0.2
"""Norm error of rounding once, in eps of the type (0.21 measured)."""
LONG = 8192
"""Terms of a sum up to which FACTOR covers a plain accumulation (13 to 16 measured)."""
NO_ORACLE = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1e-2,
}
"""Norm-relative limits where the reference has no float64 form."""
NO_ORACLE_POLICY = {Policy.TF32: 3e-4, Policy.HALF: 1e-2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuous:
    """A floating output with the units of its limits."""

    exact: Exact
    signs: Tensor
    """The exact output where it is not finite (±inf), else 0; empty when all are finite."""
    strict: Deviation
    """Error of the reference itself, at least one rounding."""
    rounded: Deviation | None
    """The same with rounded operands, under `tf32` and `half`."""
    half: bool
    """Whether the reference itself errs as a half type does: the output is one, or was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong with an output, what is remarkable, and its errors in units of the limits."""

    fault: str = ""
    note: str = ""
    error: float | None = None
    worst: float | None = None

    def named(self, name: str) -> Finding:
        """The same, with the output's name before the words."""
        fault = name + self.fault if self.fault else ""
        note = name + self.note if self.note else ""
        return Finding(fault=fault, note=note, error=self.error, worst=self.worst)


def continuous(runs: Runs, number: int) -> Continuous | None:
    """What one output should be; None when the reference is not finite where it could be."""
    output = output_of(runs.declared, number)
    values = output.double() if runs.exact is None else output_of(runs.exact, number)
    whole = all_finite(values) and all_finite(output)
    signs = torch.empty(0) if whole else _signs(values, output)
    if signs is None:
        return None
    truth = exact_output(values, lambda: _terms(runs.draw))
    strict = _unit(runs, truth, number)
    wide = EPS[torch.float32] * ONE_ROUNDING * FACTOR
    half = has_half(runs.draw, runs.declared)
    if output.dtype is torch.float32 and strict.norm <= wide:
        half = False
    return Continuous(
        exact=truth,
        signs=signs,
        strict=strict,
        rounded=None if runs.rounded is None else deviation(truth, output_of(runs.rounded, number)),
        half=half,
    )


def _signs(values: Tensor, output: Tensor) -> Tensor | None:
    """±inf where both have the same one, else 0; None when they differ or hold NaN."""
    finite = torch.isfinite(values)
    strange = bool((torch.isfinite(output) != finite).any()) or bool(torch.isnan(values).any())
    if strange or not torch.equal(output[~finite].double(), values[~finite]):
        return None
    return values.masked_fill(finite, 0.0)


def _unit(runs: Runs, truth: Exact, number: int) -> Deviation:
    """The reference's own error, at least one rounding of the type."""
    output = output_of(runs.declared, number)
    if runs.exact is None:
        half = has_half(runs.draw, runs.declared)
        limit, norm, other = NO_ORACLE[output.dtype], *_factors(half=half)
        return Deviation(norm=limit / norm, worst=100 * limit / other, slice=10 * limit / other)
    eps = EPS[output.dtype] * _growth(runs.draw, output)
    floor = Deviation(norm=eps * ONE_ROUNDING, worst=eps / 2, slice=eps * ONE_ROUNDING)
    unit = deviation(truth, output).larger(floor)
    if runs.noisy is not None:
        noisy = output_of(runs.noisy, number)
        if all_finite(noisy):
            unit = unit.larger(deviation(truth, noisy))
    return unit


def _factors(*, half: bool) -> tuple[float, float]:
    return (HALF_NORM, HALF_WORST) if half else (FACTOR, FACTOR)


def _growth(draw: DrawInput, output: Tensor) -> float:
    """How much more than one rounding sums of over LONG terms cost honestly: the square root.

    A plain float32 sum of k terms errs by about 0.1 * sqrt(k) eps; torch's own pairwise sum does
    not show it, and the few outputs of a long sum may be right by luck.
    """
    terms = sum(t.numel() for t in flatten(draw.inputs) if isinstance(t, Tensor))
    ratio = terms / max(1, output.numel()) / LONG
    return math.sqrt(ratio) if output.dtype is torch.float32 and ratio > 1 else 1.0


def _terms(draw: DrawInput) -> float:
    """Largest root mean square of the floating inputs: the size of what may cancel."""
    floats = [t for t in flatten(draw.inputs) if isinstance(t, Tensor) and t.is_floating_point()]
    return max((float(t.float().norm()) / max(1, t.numel()) ** 0.5 for t in floats), default=0.0)


def close(goal: Continuous, output: Tensor, policy: Policy, *, places: bool) -> Finding:
    """Whether the finite masks agree and every error is within its limit."""
    strange = _strange(goal, output)
    if strange is not None and bool(strange.any()):
        return Finding(fault="not finite as it should be: " + located(strange, output))
    found, (unit, norm, other) = deviation(goal.exact, output), _limits(goal, policy)
    error, worst = found.norm / unit.norm, found.worst / unit.worst
    if error <= norm and worst <= other and found.slice <= other * unit.slice:
        return Finding(error=error, worst=worst)
    fault = _place(goal, output, other * unit.worst) if places else "wrong"
    return Finding(fault=fault, error=error, worst=worst)


def _strange(goal: Continuous, output: Tensor) -> Tensor | None:
    """Where the output is infinite or NaN and should not be, or the other way; None: nowhere."""
    if goal.exact.finite is None:
        return None if all_finite(output) else ~torch.isfinite(output)
    finite = torch.isfinite(output)
    return (finite != goal.exact.finite) | (~finite & (output != goal.signs))


def _limits(goal: Continuous, policy: Policy) -> tuple[Deviation, float, float]:
    """The unit of each error and the factors for the norm and for elements and slices."""
    if goal.half:
        return goal.strict, HALF_NORM, HALF_WORST
    if goal.rounded is None or policy is Policy.STRICT:
        return goal.strict, FACTOR, FACTOR
    wide, narrow = goal.strict, goal.rounded
    loose = Deviation(
        norm=wide.norm * FACTOR / HALF_NORM,
        worst=wide.worst * FACTOR / HALF_WORST,
        slice=wide.slice * FACTOR / HALF_WORST,
    )
    return narrow.larger(loose), HALF_NORM, HALF_WORST


def _place(goal: Continuous, output: Tensor, limit: float) -> str:
    error = difference(goal.exact, output).abs()
    bad = error > limit
    if not bool(bad.any()):  # only the sum of errors is too large
        bad = error > 0.25 * float(error.max())
        return "precision too low: " + located(bad, output, goal.exact.values)
    return located(bad, output, goal.exact.values)
