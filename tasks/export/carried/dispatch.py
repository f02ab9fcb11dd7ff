"""Who computes: the kernel where it was verified for the input, else the reference."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import strictness
from .kernel import Kernel, UnverifiedError


def dispatch(
    kernels: Sequence[Kernel],
    variant: int | None,
    state: Sequence[Any],
    inputs: Sequence[Any],
    otherwise: Callable[..., Any],
) -> Any:
    """The operator's result, by a kernel or by `otherwise(*inputs)`.

    The reference computes what was not verified: another size, dtype or device, constructor
    arguments that no kernel was made for, autocast, and whatever needs gradients.
    """
    tensors = (*inputs, *state)
    if not _needs_more(tensors):
        for kernel in kernels:
            if kernel.takes(variant, tensors) and kernel.is_here(tensors[0].device.index):
                found = kernel.op(*tensors, variant)
                return list(found) if kernel.facts.returns == "list" else found
    if strictness.required():
        raise UnverifiedError(_told(kernels, tensors))
    return otherwise(*inputs)


def _needs_more(tensors: Sequence[Any]) -> bool:
    """Whether gradients or autocast are wanted, which kernels do not have."""
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            return True
        if tensor.requires_grad and torch.is_grad_enabled():
            return True
        if tensor.device.type != "meta" and torch.is_autocast_enabled(tensor.device.type):
            return True
    return False


def _told(kernels: Sequence[Kernel], tensors: Sequence[Any]) -> str:
    given = ", ".join(
        f"{t.dtype}{list(t.shape)} on {t.device.type}" if isinstance(t, torch.Tensor) else repr(t)
        for t in tensors
    )
    known = "; ".join(f"{k.facts.place}: {k.described()}" for k in kernels)
    return (
        f"{kernels[0].facts.operator} was not verified for {given}, with gradients, under autocast "
        f"or with these constructor arguments; verified inputs: {known}"
    )
