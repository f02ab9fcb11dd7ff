"""Modules of a model that compute the same as a ported operator, found and given its kernels."""

import inspect
import types
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

from .catalogue import KERNELS
from .dispatch import dispatch
from .graph import graph
from .kernel import Case, Kernel
from .ported import Ported, at


@dataclass(frozen=True, kw_only=True)
class Patched:
    """A module whose `forward` goes to a kernel where one was verified."""

    module: str
    """Its name in the model; empty for the model itself."""
    kind: str
    operator: str
    kernels: tuple[str, ...]
    shapes: tuple[str, ...]
    """Sizes at which the kernel is used; at others the module computes as before."""


@dataclass(frozen=True, kw_only=True)
class _Bound:
    """What a patched module needs at each call."""

    kernels: tuple[Kernel, ...]
    variant: int
    state: tuple[str, ...]


def patch(model: nn.Module) -> tuple[Patched, ...]:
    """Gives kernels to the modules that compute the same; returns what was patched.

    A module is the same when its ATen calls at every verified size are those of the reference,
    with parameters of the same shapes and dtypes, in training and not. Only its `forward` is
    replaced, on the instance: parameters, names and hooks stay.
    """
    done: list[tuple[str, Patched]] = []
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{outer}." if outer else "") for outer, _ in done)
        if inside or isinstance(module, Ported) or "forward" in vars(module):
            continue
        found = next(_bindings(module), None)
        if found is not None:
            module.kforge_bound = found
            module.forward = types.MethodType(_forward, module)
            done.append((name, _patched(name, module, found)))
    return tuple(patched for _, patched in done)


def unpatch(model: nn.Module) -> int:
    """Undoes `patch`; returns how many modules have their own `forward` again."""
    patched = [m for m in model.modules() if "kforge_bound" in vars(m)]
    for module in patched:
        del module.kforge_bound, module.forward
    return len(patched)


def _forward(module: Any, *inputs: Any, **named: Any) -> Any:
    bound, own = module.kforge_bound, type(module).forward
    if named or len(inputs) != len(bound.kernels[0].facts.inputs):
        return own(module, *inputs, **named)
    state = [at(module, path) for path in bound.state]

    def otherwise(*given: Any) -> Any:
        return own(module, *given)

    return dispatch(bound.kernels, bound.variant, state, inputs, otherwise)


def _patched(name: str, module: nn.Module, bound: _Bound) -> Patched:
    cases = [c for k in bound.kernels for c in k.facts.cases if c.variant == bound.variant]
    return Patched(
        module=name,
        kind=type(module).__name__,
        operator=bound.kernels[0].facts.operator,
        kernels=tuple(k.facts.name for k in bound.kernels),
        shapes=tuple(dict.fromkeys(str([list(s) for _, s in c.inputs]) for c in cases)),
    )


def _bindings(module: nn.Module) -> Iterator[_Bound]:
    """The operators that compute the same as the module."""
    for kernels in KERNELS.values():
        for variant in range(len(kernels[0].facts.variants)):
            cases = [c for c in kernels[0].facts.cases if c.variant == variant]
            if cases and _alike(module, cases[0]):
                state = _mapped(module, kernels[0], variant, cases)
                if state is not None:
                    yield _Bound(kernels=kernels, variant=variant, state=state)


def _alike(module: nn.Module, case: Case) -> bool:
    """Whether a trace is worth its time: as many arguments, the same parameters."""
    held = Counter((t.dtype, tuple(t.shape)) for t in module.state_dict().values())
    try:
        inspect.signature(type(module).forward).bind(module, *case.inputs)
    except (TypeError, ValueError):
        return False
    return held == Counter(case.state)


def _mapped(
    module: nn.Module, kernel: Kernel, variant: int, cases: list[Case]
) -> tuple[str, ...] | None:
    """Names of the module's parameters in the kernel's order; None when it is not the same."""
    reference = kernel.reference()(*kernel.facts.variants[variant])
    orders = set()
    for case in cases:
        theirs, ours = graph(module, case.inputs), graph(reference, case.inputs)
        if theirs is None or ours is None or theirs.text != ours.text:
            return None
        by_name = dict(zip(ours.state, theirs.state, strict=True))
        orders.add(tuple(by_name[name] for name in kernel.facts.state))
    return orders.pop() if len(orders) == 1 else None
