"""What a child answers: where an output lies, or what went wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from data.records import RunStatus
from targets.remote.arena import dtype_of, span

_DIMENSIONS = 64
_FENCE, _FENCES = 1 << 12, 1 << 12


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong in a child: the candidate's fault, a value."""

    status: RunStatus
    detail: str


class SideFault(Exception):  # noqa: N818 (carries a Fault through the judge to `measure`)
    """Raised by every method of a Side; `measure` makes a result of it, it goes no further."""

    def __init__(self, status: RunStatus, detail: str) -> None:
        super().__init__(detail)
        self.fault = Fault(status, detail)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a child says that an output lies."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    value: object = None
    """An output that is no tensor: a Python number, text or None."""
    plain: bool = False
    slot: int | None = None
    """Its place among the judge's copies; None where it is read out of the child's memory."""

    @property
    def nbytes(self) -> int:
        return int(span(self.shape, self.strides) * self.dtype.itemsize)


def output(told: Mapping[str, Any]) -> Output:
    """The place that a child names; SideFault or ValueError when it is no plain tensor's."""
    if told["type"] == "value":
        return Output(torch.uint8, (0,), (1,), 0, told["value"], plain=True)
    if told["type"] != "tensor":
        kind = str(told["type"])[:80]
        raise SideFault(RunStatus.BAD_STRUCTURE, f"an output is {kind}, not a plain device tensor")
    shape, strides = (tuple(int(n) for n in told[k]) for k in ("shape", "strides"))
    out = Output(dtype_of(str(told["dtype"])), shape, strides, int(told["address"]))
    if len(shape) != len(strides) or len(shape) > _DIMENSIONS or min((*shape, *strides, 0)) < 0:
        raise ValueError(f"shape {shape}, strides {strides}")
    if out.nbytes > int(told["bytes"]):
        raise SideFault(RunStatus.BAD_STRUCTURE, "an output is larger than its storage")
    return out


def fences(told: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Address and bytes of each fence that a child names, no more than are worth a look."""
    try:
        return [(int(a), min(int(n), _FENCE)) for a, n in told["fences"][:_FENCES]]
    except (KeyError, TypeError, ValueError) as error:
        raise SideFault(RunStatus.FORGED, "instead of fences there came something else") from error


def same_names(
    theirs: Mapping[str, tuple[tuple[int, ...], str]], state: Mapping[str, torch.Tensor]
) -> None:
    """Raises BAD_STRUCTURE unless parameters and buffers are exactly those of the operator."""
    missing = [k for k in state if k not in theirs]
    extra = [k for k in theirs if k not in state]
    if missing or extra:
        lacks = f"lacks {', '.join(missing)}" if missing else f"adds {', '.join(extra)}"
        detail = f"parameters and buffers must be named as in Model: ModelNew {lacks}"
        raise SideFault(RunStatus.BAD_STRUCTURE, detail)
    for name, value in state.items():
        if theirs[name][0] != tuple(value.shape):
            detail = f"{name} has shape {theirs[name][0]}, expected {tuple(value.shape)}"
            raise SideFault(RunStatus.BAD_STRUCTURE, detail)
