"""The reference, run in the declared precision, in float64, and with variations of both."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from data.records import Policy
from targets.remote.draws import DrawInput
from targets.remote.operator import LoadedOperator, foreign
from targets.remote.sizing import flatten, map_tensors

aten = torch.ops.aten

NARROW = (torch.float32, torch.float16, torch.bfloat16)
EPS = {
    torch.float64: 2.0**-52,
    torch.float32: 2.0**-23,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
}
"""Distance from 1 to the next number."""
POOL = 1_000_003
"""Random numbers for noise; prime, so that no row is as long."""


def declared(loaded: LoadedOperator, draw: DrawInput) -> list[object]:
    """Outputs of the reference in its own precision, no reduced precision allowed."""
    return _forward(_model(loaded, draw), map_tensors(torch.clone, draw.inputs), [])


def watched(loaded: LoadedOperator, draw: DrawInput, mode: TorchDispatchMode) -> list[object]:
    """The same, each ATen call seen by `mode`."""
    return _forward(_model(loaded, draw), map_tensors(torch.clone, draw.inputs), [mode])


def rounded(
    loaded: LoadedOperator, draw: DrawInput, rounding: Callable[[Tensor], Tensor]
) -> list[object]:
    """The same with the operands of products rounded; accumulation stays as it is."""
    inputs = map_tensors(torch.clone, draw.inputs)
    return _forward(_model(loaded, draw), inputs, [_Rounded(rounding)])


def exact(
    loaded: LoadedOperator, draw: DrawInput, *, noise: float = 0.0, steps: bool = True
) -> list[object]:
    """Outputs of the reference in float64, from up-cast inputs and parameters.

    With `noise`, each input is changed by up to that many roundings of its type. Without `steps`
    rounding to integers is left out: what a quantised output was before.
    """
    chance = random.Random(int(noise * 1000) + 17)

    def widen(x: Tensor) -> Tensor:
        wide = _wide(x)
        if not (noise and x.is_floating_point()):
            return wide
        own = wide.clone() if wide is x else wide
        return _shaken(own.contiguous(), noise * EPS.get(x.dtype, 0.0), chance)

    model = _model(loaded, draw).double()
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                setattr(module, name, _wide(value))
    with _default(torch.float64):
        return _forward(model, map_tensors(widen, draw.inputs), [_Widened(steps=steps)])


def to_tf32(x: Tensor) -> Tensor:
    """float32 rounded to TensorFloat-32: 10 bits of mantissa, nearest even.

    >>> to_tf32(torch.tensor([1 + 2**-10, 1 + 2**-12])).tolist()
    [1.0009765625, 1.0]
    """
    if x.dtype is not torch.float32:
        return x
    bits = x.contiguous().view(torch.int32)
    bits = (bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF
    return torch.where(x.isfinite(), bits.view(torch.float32), x)


def to_bfloat16(x: Tensor) -> Tensor:
    """Values rounded to bfloat16, in the type they had."""
    return x.bfloat16().to(x.dtype) if x.is_floating_point() else x


def to_float8(x: Tensor) -> Tensor:
    """Values rounded to 3 bits of mantissa (e4m3), in the type they had."""
    return x.float().to(torch.float8_e4m3fn).to(x.dtype) if x.is_floating_point() else x


ROUNDING: dict[Policy, Callable[[Tensor], Tensor]] = {
    Policy.TF32: to_tf32,
    Policy.HALF: to_bfloat16,
}
"""What a policy lets happen to the operands of a product; the looser half type stands for both."""


def _model(loaded: LoadedOperator, draw: DrawInput) -> nn.Module:
    """A model of its own with the draw's state: a forward may change its buffers."""
    with foreign("Model"):
        model = copy.deepcopy(loaded.skeleton(draw.shape))
        model.load_state_dict(draw.state, strict=True)
    return model.to(loaded.place)


def _forward(model: nn.Module, inputs: list[Any], modes: list[Any]) -> list[object]:
    with ExitStack() as stack, foreign("Model.forward"):
        stack.enter_context(torch.no_grad())
        stack.enter_context(_full_precision())
        for mode in modes:
            stack.enter_context(mode)
        return flatten(model(*inputs))


def _shaken(values: Tensor, size: float, chance: random.Random) -> Tensor:
    """`values`, contiguous float64, changed in place: each times 1 plus at most half of `size`.

    One pool of random numbers serves all, in pieces that begin anywhere and have either sign: the
    numbers themselves took half of the oracle's time.
    """
    pool, flat = _pool(values.device), values.view(-1)
    for low in range(0, flat.numel(), POOL):
        part, start = flat[low : low + POOL], chance.randrange(POOL)
        own = pool[start : start + part.numel()]
        part.addcmul_(part, own, value=chance.choice((-size, size)))
    return values


@cache
def _pool(place: torch.device) -> Tensor:
    """Uniform numbers from -0.5 to 0.5, twice the same ones in a row."""
    generator = torch.Generator(place).manual_seed(17)
    half = torch.rand(POOL, generator=generator, dtype=torch.float64, device=place) - 0.5
    return torch.cat((half, half))


def _wide(x: Tensor) -> Tensor:
    if x.is_floating_point():
        return x.double()
    return x.to(torch.complex128) if x.is_complex() else x.clone()


@contextmanager
def _full_precision() -> Iterator[None]:
    """TF32 off everywhere: for convolutions torch has it on by default."""
    matmul, convolution = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = convolution


@contextmanager
def _default(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


TO_COPY = aten._to_copy.default  # noqa: SLF001 - what `.to(dtype)` becomes
CONVOLUTION = aten.convolution.default
"""In float64 torch unfolds the input for a whole batch at once: 18 GB where a call has 0.8 GB."""
STEPPED = {aten.round.default, aten.floor.default, aten.ceil.default, aten.trunc.default}


class _Widened(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """Casts to narrower floating types stay in float64, so that no step loses the precision."""

    def __init__(self, *, steps: bool) -> None:
        super().__init__()
        self.steps = steps

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        dtype = kwargs.get("dtype")
        if dtype in NARROW:
            kwargs["dtype"] = torch.float64
        if func is CONVOLUTION and args[0].ndim > 2 and len(args[0]) > 1:
            return torch.cat([func(one, *args[1:], **kwargs) for one in args[0].split(1)])
        if not self.steps:
            if func in STEPPED:
                return args[0].clone()
            if func is TO_COPY and dtype is not None and args[0].is_floating_point():
                kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


PRODUCTS = frozenset(
    {
        "mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "linear",
        "convolution", "_convolution", "mkldnn_convolution",
        "_scaled_dot_product_flash_attention_for_cpu",
    }
)  # fmt: skip


class _Rounded(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """Floating operands of matrix products and convolutions are rounded; added terms are not."""

    def __init__(self, rounding: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.rounding = rounding

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in PRODUCTS:
            first = 1 if name.startswith(("add", "badd")) else 0
            last = first + (3 if "attention" in name else 2)
            args = tuple(
                map_tensors(self.rounding, a) if first <= i < last else a
                for i, a in enumerate(args)
            )
        return func(*args, **(kwargs or {}))
