"""Shapes and bytes of one call, found without allocating its tensors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from data.records import TensorSpec
from targets.remote.operator import LoadedOperator, foreign


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The tensors of one call."""

    inputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    bytes: int
    """Inputs, parameters and outputs."""
    largest: int
    """Bytes of the largest single tensor between them."""
    product_flops: float
    """Operations of matrix products and convolutions alone, as torch counts them."""


class _Largest(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """Notes the largest result of any ATen call."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        found = [r for r in flatten(result) if isinstance(r, torch.Tensor)]
        self.bytes = max([self.bytes, *(r.numel() * r.element_size() for r in found)])
        return result


def flatten(value: object) -> list[object]:
    """The leaves of nested lists, tuples and dicts, in order: how outputs are counted.

    >>> flatten({"a": [1, (2,)], "b": None})
    [1, 2, None]
    """
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in flatten(v)]
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in flatten(v)]
    return [value]


def map_tensors(change: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """`value` with each tensor in nested lists, tuples and dicts changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {k: map_tensors(change, v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(change, v) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(change, v) for v in value)
    return value


@lru_cache(maxsize=256)
def sizes(loaded: LoadedOperator, shape: str) -> Sizes:
    """What one call needs; raises OperatorFault when the operator does not take the shape."""
    with _quiet(), FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        inputs = loaded.inputs(shape, 0)
        model = loaded.model(shape, 0)
        with FlopCounterMode(display=False) as flops, _Largest() as watch, foreign("Model.forward"):
            outputs = flatten(model(*inputs))
    state = list(model.state_dict().items())
    tensors = [*flatten(inputs), *(v for _, v in state), *outputs]
    return Sizes(
        inputs=specs("input", flatten(inputs)),
        parameters=tuple(spec(n, v) for n, v in state),
        outputs=specs("output", outputs),
        bytes=sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor)),
        largest=watch.bytes,
        product_flops=float(flops.get_total_flops()),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's own report of an operator that does not take a shape: that is an answer."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before


def specs(prefix: str, values: list[object]) -> tuple[TensorSpec, ...]:
    """Specs of all values; Python scalars have shape () and their type as dtype."""
    return tuple(spec(f"{prefix}{i}", v) for i, v in enumerate(values))


def spec(name: str, value: object) -> TensorSpec:
    """Shape and dtype of one value."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return TensorSpec(name=name, shape=tuple(value.shape), dtype=dtype)
    return TensorSpec(name=name, shape=(), dtype=type(value).__name__)
