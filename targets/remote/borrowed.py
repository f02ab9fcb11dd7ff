"""A torch tensor over memory that torch did not allocate, by the DLPack protocol.

Standard library and torch only: torch's other ways in need numpy or a compiled extension.
"""

import ctypes
from typing import Any

import torch

CPU, CUDA = 1, 2
"""DLDeviceType."""
_UNSIGNED = 1


class _Tensor(ctypes.Structure):
    """DLManagedTensor, with the deleter that DLPack calls when the tensor goes."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_KEPT: list[Any] = []
"""torch reads the structure when the tensor goes, and nobody says when: 72 bytes an arena stay."""


def borrowed(address: int, size: int, *, kind: int, index: int = 0) -> torch.Tensor:
    """`size` bytes at `address` as a flat uint8 tensor; whoever owns the memory keeps it longer.

    >>> memory = ctypes.create_string_buffer(b"abc")
    >>> borrowed(ctypes.addressof(memory), 3, kind=CPU).tolist()
    [97, 98, 99]
    """
    shape = (ctypes.c_int64 * 1)(size)
    strides = (ctypes.c_int64 * 1)(1)
    told = _Tensor(address, kind, index, 1, _UNSIGNED, 8, 1, shape, strides, 0, None, None)
    _KEPT.append((told, shape, strides))
    return torch.utils.dlpack.from_dlpack(_capsule(ctypes.addressof(told), b"dltensor", None))
