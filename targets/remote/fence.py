"""Memory round a candidate's own tensors that shows stray reads and writes.

It runs inside the candidate's process: advice against an adversary, proof against a slip.
"""

import contextlib
import ctypes
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from targets.remote.arena import span

WIDTH = 256
"""Bytes before and behind a tensor; a multiple of every alignment that vectors need."""
FILL = 0xFE
"""Of each byte: huge negative numbers, NaN in float16. Not what lies behind inputs: a kernel that
runs one element too far copies that."""
ALLOCATES = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
_M_PERTURB = -6


def perturb(value: int) -> None:
    """New memory holds the inverse of this byte, freed memory the byte; 0 ends it. glibc only."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_PERTURB, value)


class Fence(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """While it is on, tensors that ATen allocates without a value lie between fences."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[torch.Tensor] = []
        """Kept until the judge has looked at them."""

    def places(self) -> list[tuple[int, int]]:
        """Address and bytes of every fence."""
        ends = [(b.data_ptr(), b.data_ptr() + b.numel() - WIDTH) for b in self._blocks]
        return [(address, WIDTH) for pair in ends for address in pair]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in ALLOCATES and _fits(result):
            return self._fenced(result)
        return result

    def _fenced(self, like: torch.Tensor) -> torch.Tensor:
        size = span(like.shape, like.stride()) * like.element_size()
        block = torch.full((WIDTH + size + WIDTH,), FILL, dtype=torch.uint8)
        self._blocks.append(block)
        made = torch.empty(0, dtype=like.dtype)
        storage, offset = block.untyped_storage(), WIDTH // like.element_size()
        return made.set_(storage, offset, like.shape, like.stride())


def _fits(result: object) -> bool:
    return (
        isinstance(result, torch.Tensor)
        and result.device.type == "cpu"
        and result.layout == torch.strided
        and result.element_size() <= WIDTH
    )
