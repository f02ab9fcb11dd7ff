"""What a child says of a result: where its tensors lie, what was raised."""

import traceback
from typing import Any

import torch

from targets.remote.arena import name_of


def leaves_of(value: Any) -> list[Any]:
    """The values of an output, in order."""
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in leaves_of(v)]
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in leaves_of(v)]
    return [value]


def described(value: Any, place: str) -> list[dict[str, Any]]:
    return [_where(leaf, place) for leaf in leaves_of(value)]


def _where(value: Any, place: str) -> dict[str, Any]:
    """Type and place of an output; a Parameter counts as the tensor that it holds."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return {"type": "value", "value": value}
    if kind is torch.nn.Parameter:
        kind, value = torch.Tensor, value.data
    if kind is not torch.Tensor:
        return {"type": f"{kind.__module__}.{kind.__qualname__}"}
    if value.layout != torch.strided or value.device.type != place:
        return {"type": f"{value.layout} on {value.device}"}
    if value.is_conj() or value.is_neg():
        value = value.resolve_conj().resolve_neg()
    return {
        "type": "tensor",
        "dtype": name_of(value.dtype),
        "shape": list(value.shape),
        "strides": list(value.stride()),
        "address": value.data_ptr(),
        "bytes": value.untyped_storage().nbytes() - value.storage_offset() * value.element_size(),
    }


def told(error: BaseException) -> dict[str, str]:
    """Type, message and the candidate's own lines of the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"line {f.lineno}: {f.line}" for f in frames if "candidate_" in f.filename]
    if isinstance(error, SyntaxError) and error.lineno:
        own.append(f"line {error.lineno}: {(error.text or '').strip()}")
    message = str(error)
    return {
        "type": type(error).__name__,
        "message": message if len(message) < 4000 else f"{message[:2000]} ... {message[-2000:]}",
        "trace": "; ".join(own[-6:]),
    }
