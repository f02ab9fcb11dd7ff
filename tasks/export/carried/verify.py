"""The kernels compared with the reference anew: fresh seeds, every declared size."""

import importlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .kernel import Case, Kernel, UnavailableError

FACTOR = 64.0
"""How many times the reference's own error against float64 a kernel may have (KForge's judge)."""
UNITS = {"strict": 0.0, "tf32": 2.0**-11, "half": 2.0**-8}
"""One rounding of the precision that the contract allows; strict: that of the output's dtype."""
ROUNDED = 1e-3
"""Share of a quantized output that may differ by one step: ties of the rounding."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kernel at one size."""

    kernel: str
    shape: str
    status: str
    """right, wrong, or not run."""
    error: float | None = None
    """Largest error over the root mean square of the exact output."""
    limit: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        figures = "" if self.error is None else f"  max error {self.error:.2e}"
        figures += "" if self.limit is None else f", limit {self.limit:.2e}"
        why = f"  {self.reason}" if self.reason else ""
        return f"{self.kernel}  {self.shape}  {self.status}{figures}{why}"


def findings(kernel: Kernel, seed: int | None = None) -> Iterator[Finding]:
    """One at each declared size; without a seed a secret one."""
    first = secrets.randbelow(2**31) if seed is None else seed
    for number, case in enumerate(c for c in kernel.facts.cases if c.sizes is not None):
        yield finding(kernel, case, first + number)


def finding(kernel: Kernel, case: Case, seed: int) -> Finding:
    """The kernel at one size on inputs of that seed."""
    named = Finding(kernel=kernel.facts.name, shape=case.shape, status="not run")
    reason = missing(kernel)
    if reason:
        return replace(named, reason=reason)
    try:
        return _compared(kernel, case, named, drawn(kernel, case, seed, kernel.facts.place))
    except UnavailableError as fault:
        return replace(named, reason=str(fault))
    except RuntimeError as fault:
        first = str(fault).strip().partition("\n")[0]
        return replace(named, status="wrong", reason=f"{type(fault).__name__}: {first}")


def missing(kernel: Kernel) -> str:
    """Why the kernel cannot be called on this machine; empty when it can."""
    place = kernel.facts.place
    module = getattr(torch, place, None)
    if place != "cpu" and (module is None or not module.is_available()):
        return f"no {place} device here"
    if not kernel.is_here(0):
        return f"verified on {kernel.facts.card}, which is not here"
    return ""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Inputs and the reference with random parameters."""

    inputs: tuple[Any, ...]
    model: torch.nn.Module


def drawn(kernel: Kernel, case: Case, seed: int, place: str) -> Drawn:
    """A fresh set of inputs at the case's size."""
    package, operator = kernel.package, kernel.facts.operator
    module = importlib.import_module(f"{package}.operators.{operator}")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        inputs = module.get_inputs(**(case.sizes or {}))
        model = module.Model(*kernel.facts.variants[case.variant])
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(0.3 * torch.randn_like(parameter))
    placed = tuple(t.to(place) for t in inputs)
    return Drawn(inputs=placed, model=model.to(place))


def _compared(kernel: Kernel, case: Case, named: Finding, given: Drawn) -> Finding:
    with torch.no_grad():
        plain = _leaves(given.model(*given.inputs))
        found = _leaves(called(kernel, case, given))
        exact = _exact(given) or plain
    unit = UNITS[kernel.facts.policy]
    kinds = kernel.facts.kinds or ("",) * len(found)
    worst, limit = 0.0, None
    for result, near, truth, kind in zip(found, plain, exact, kinds, strict=True):
        if not result.is_floating_point():
            if reason := _discrete(result, near, kind):
                return replace(named, status="wrong", reason=reason)
            continue
        error, own = max(_errors(result, truth)), max(_errors(near, truth))
        limit = FACTOR * max(unit, torch.finfo(result.dtype).eps, own)
        worst = max(worst, error)
        if not error <= limit:
            return replace(named, status="wrong", error=error, limit=limit)
    return replace(named, status="right", error=worst if limit else None, limit=limit)


def called(kernel: Kernel, case: Case, given: Drawn) -> Any:
    """The kernel's own answer; UnverifiedError instead of a reference that stands in."""
    state = given.model.state_dict()
    held = [state[name] for name in kernel.facts.state]
    return kernel.op(*given.inputs, *held, case.variant)


def _exact(given: Drawn) -> list[Tensor] | None:
    """The reference in float64; None where it does not run so."""
    doubled = [t.double() if t.is_floating_point() else t for t in given.inputs]
    try:
        return [t.double() for t in _leaves(given.model.double()(*doubled))]
    except (RuntimeError, TypeError):
        return None  # MPS has no float64; some operators name their dtype


def _leaves(value: Any) -> Sequence[Tensor]:
    return value if isinstance(value, tuple | list) else (value,)


def _errors(result: Tensor, truth: Tensor) -> tuple[float, float]:
    """Error as a whole and in the worst element, over the exact output's size; inf for NaN."""
    result, truth = result.double(), truth.double()
    finite = torch.isfinite(truth)
    if not torch.equal(finite, torch.isfinite(result)):
        return (float("inf"), float("inf"))
    apart = torch.where(finite, result - truth, 0.0)
    kept = torch.where(finite, truth, 0.0)
    rms = kept.square().mean().sqrt().clamp_min(1e-30)
    if not apart.numel():
        return (0.0, 0.0)
    worst = (apart.abs() / (kept.abs() + rms)).max()
    return (float(apart.square().mean().sqrt() / rms), float(worst))


def _discrete(result: Tensor, plain: Tensor, kind: str) -> str:
    """What is wrong with an integer or boolean output; empty when nothing is."""
    differs = result != plain
    if not differs.any():
        return ""
    share = float(differs.double().mean())
    steps = (result.long() - plain.long()).abs()
    if kind == "quantized" and int(steps.max()) <= 1 and share <= ROUNDED:
        return ""
    return f"{share:.2%} of the elements differ"
