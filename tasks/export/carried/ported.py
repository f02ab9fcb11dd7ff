"""An operator with its kernels: a module in the place of the reference, and a function."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from .dispatch import dispatch
from .kernel import Kernel


class Ported(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Stands before the reference's class: same constructor, parameters and results."""

    kernels: tuple[Kernel, ...] = ()
    reference: Any = None
    """The class that computes the operator in PyTorch."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.variant = variant_of(self.kernels[0], arguments, keywords)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        facts = self.kernels[0].facts
        rest = facts.inputs[len(inputs) :]
        if named and set(rest) == set(named):
            inputs, named = (*inputs, *(named[n] for n in rest)), {}
        if named:
            return super().forward(*inputs, **named)
        state = [at(self, path) for path in facts.state]
        return dispatch(self.kernels, self.variant, state, inputs, super().forward)


def at(module: Any, path: str) -> Any:
    """The attribute at a dotted path."""
    for word in path.split("."):
        module = getattr(module, word)
    return module


def variant_of(kernel: Kernel, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> int | None:
    """Which of the kernel's constructor arguments these are, defaults filled in; None if none."""
    takes = inspect.signature(kernel.reference())

    def filled(*given: Any, **named: Any) -> Any:
        bound = takes.bind(*given, **named)
        bound.apply_defaults()
        return _frozen((*bound.args, *bound.kwargs.values()))

    wanted = filled(*arguments, **keywords)
    known = (filled(*variant) == wanted for variant in kernel.facts.variants)
    return next((number for number, same in enumerate(known) if same), None)


def _frozen(value: Any) -> Any:
    """The value with its lists as tuples, each plain value with its type: True is not 1."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(v) for v in value)
    return (type(value).__name__, value)


def module(kernels: tuple[Kernel, ...], name: str) -> type[nn.Module]:
    """The class that replaces the reference."""
    reference = kernels[0].reference()
    text = f"`{kernels[0].facts.operator}`, by its kernels where they were verified."
    body = {"kernels": kernels, "reference": reference, "__doc__": text}
    body["__module__"] = kernels[0].package
    return type(name, (Ported, reference), body)


def function(kernels: tuple[Kernel, ...]) -> Callable[..., Any]:
    """The operator as a function of its inputs; it has neither state nor constructor arguments."""
    reference = kernels[0].reference()()

    def call(*inputs: Any) -> Any:
        return dispatch(kernels, 0, (), inputs, reference)

    call.__name__ = call.__qualname__ = kernels[0].facts.operator
    call.__doc__ = f"`{call.__name__}`, by its kernels where they were verified."
    return call
