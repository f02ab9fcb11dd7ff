"""Whose code made the answer: ATen's, or the candidate's own.

A dispatch mode sees every ATen call of a child. It follows memory, not names: a block that
something other than ATen wrote is *authored*, and so is all that ATen computes from it. A decoy
whose result is dropped reaches no output. The pass runs inside the candidate's process, so against
an adversary it is advice; against ordinary generation it decides.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

BLANK = 0x55
"""What fresh memory is filled with, so that a write shows even when it repeats old values."""

ALLOCATES = {
    "empty",
    "empty_like",
    "empty_strided",
    "empty_permuted",
    "new_empty",
    "new_empty_strided",
}
# fmt: off
MOVES = ALLOCATES | {
    "copy_", "copy", "clone", "_to_copy", "detach", "alias", "lift_fresh", "lift", "fill_", "fill",
    "zero_", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "new_zeros",
    "new_ones", "new_full", "scalar_tensor", "resize_", "set_", "_local_scalar_dense",
    "is_same_size", "_unsafe_view", "_reshape_alias", "_reshape_copy", "random_", "uniform_",
    "normal_", "is_pinned",
}
# fmt: on
"""Neither views nor these count as library compute."""
PLACES = ("cpu", "cuda", "xpu", "mps")
"""Kinds of torch device with memory that can be looked at."""
OVERWRITES = {"copy_", "fill_", "zero_", "random_", "uniform_", "normal_"}


class Tracer(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """Follows memory from `given` tensors to outputs through all ATen calls while it is on."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: dict[str, int] = {}
        """Compute calls by ATen name, in order of the first call."""
        self._blocks: dict[int, tuple[bool, int]] = {}
        """By address of the storage: authored, checksum after the last ATen call on it."""

    def begin(self, given: Sequence[torch.Tensor]) -> None:
        """From here on calls are counted; `given` is nobody's work."""
        with _disable_current_modes():
            self.ops.clear()
            for t in given:
                self._record(t, authored=False)

    def authored(self, outputs: Sequence[object]) -> bool:
        """Whether memory written by other code than ATen reaches an output."""
        with _disable_current_modes():
            return any(self._authored(t) for t in outputs if isinstance(t, torch.Tensor))

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__
        written, reads = _arguments(func, args, kwargs or {})
        tainted = any(self._authored(t) for t in reads)
        if name == "lift_fresh":  # torch.tensor(5.0): a constant of the source
            tainted = False
        before = {id(t): self._authored(t) for t in written if not _whole(t)}
        out = func(*args, **(kwargs or {}))
        if not (func.is_view or name in MOVES):
            self.ops[f"aten.{name}"] = self.ops.get(f"aten.{name}", 0) + 1
        for t in (*written, *tree_leaves(out)):
            if isinstance(t, torch.Tensor) and (not func.is_view or name == "lift_fresh"):
                if name in ALLOCATES:
                    _bytes(t).fill_(BLANK)
                self._record(t, authored=tainted or before.get(id(t), False))
        return out

    def _record(self, t: torch.Tensor, *, authored: bool) -> None:
        if _plain(t):
            self._blocks[t.untyped_storage().data_ptr()] = (authored, _checksum(t))

    def _authored(self, t: torch.Tensor) -> bool:
        """Memory that nobody announced, or that changed since the last ATen call, is authored."""
        if not _plain(t):
            return False
        known = self._blocks.get(t.untyped_storage().data_ptr())
        return known is None or known[0] or known[1] != _checksum(t)


def _arguments(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Tensors that the call writes, and those whose old values matter to it."""
    written: list[torch.Tensor] = []
    reads: list[torch.Tensor] = []
    name = func.overloadpacket.__name__
    for position, parameter in enumerate(func._schema.arguments):  # noqa: SLF001 (torch has no other way)
        value = args[position] if position < len(args) else kwargs.get(parameter.name)
        tensors = [t for t in tree_leaves(value) if isinstance(t, torch.Tensor)]
        writes = parameter.alias_info is not None and parameter.alias_info.is_write
        if writes:
            written += tensors
        if not writes or not (parameter.is_out or parameter.kwarg_only or name in OVERWRITES):
            reads += tensors
    return written, reads


def _plain(t: torch.Tensor) -> bool:
    return bool(
        t.device.type in PLACES and t.layout == torch.strided and t.untyped_storage().nbytes() > 0
    )


def _whole(t: torch.Tensor) -> bool:
    return bool(t.numel() * t.element_size() == t.untyped_storage().nbytes())


def _bytes(t: torch.Tensor) -> torch.Tensor:
    if not _plain(t):
        return torch.empty(0, dtype=torch.uint8)
    return torch.empty(0, dtype=torch.uint8, device=t.device).set_(t.untyped_storage())


def _checksum(t: torch.Tensor) -> int:
    """Of the whole storage; wraps round."""
    flat = _bytes(t)
    words = flat[: flat.numel() // 8 * 8].view(torch.int64)
    odd = flat[words.numel() * 8 :]
    return hash((int(words.sum()), int((words >> 17).sum()), int(odd.sum())))
