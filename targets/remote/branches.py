"""Branches such as a clamp or a ReLU, and whether any input takes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from targets.remote.draws import DrawInput, scaled
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.oracle import watched

BRANCHES = frozenset(
    {
        *("clamp", "clamp_min", "clamp_max", "hardtanh", "relu", "leaky_relu", "threshold"),
        *("minimum", "maximum", "fmin", "fmax", "elu", "softshrink", "hardshrink"),
    }
)
"""Calls that leave some elements as they are; the first argument is what they may change."""
Shares = dict[str, float]
"""Share of the elements that each branch changes, by its name and number in the call."""


class _Branches(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """Notes what each branch of a call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: Shares = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        plain = name.removesuffix("_")
        before = args[0].clone() if plain in BRANCHES and isinstance(args[0], Tensor) else None
        out = func(*args, **(kwargs or {}))
        if before is not None and isinstance(out, Tensor) and out.numel():
            number = sum(key.startswith(f"{plain} ") for key in self.shares) + 1
            self.shares[f"{plain} {number}"] = _share(before, out)
        return out


def _share(before: Tensor, after: Tensor) -> float:
    changed = before.expand_as(after) != after if before.ndim <= after.ndim else before != after
    return float(changed.double().mean())


def shares(loaded: LoadedOperator, draw: DrawInput) -> Shares:
    """What each branch changes under this draw; empty when the reference fails."""
    watch = _Branches()
    try:
        watched(loaded, draw, watch)
    except OperatorFault:
        return {}
    return watch.shares


def dead(found: Iterable[Shares]) -> list[str]:
    """Branches that are one-sided under all draws.

    >>> dead([{"relu 1": 0.0, "clamp 1": 0.0}, {"relu 1": 0.4, "clamp 1": 0.0}])
    ['clamp 1']
    """
    seen = list(found)
    names = dict.fromkeys(name for shares_ in seen for name in shares_)
    sides = {name: {shares_[name] for shares_ in seen if name in shares_} for name in names}
    return [name for name, values in sides.items() if values in ({0.0}, {1.0})]


def taken(
    loaded: LoadedOperator, draw: DrawInput, names: list[str], scales: Iterable[float]
) -> dict[str, float]:
    """For each of the branches the least scale of this draw's inputs that takes it in part."""
    found: dict[str, float] = {}
    for scale in scales:
        if len(found) == len(names):
            break
        seen = shares(loaded, scaled(loaded, draw, scale))
        for name in names:
            if name not in found and 0.0 < seen.get(name, 0.0) < 1.0:
                found[name] = scale
    return found
