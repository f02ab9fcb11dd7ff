"""What the judge needs of libcuda, by ctypes: memory that two processes map, and waiting.

Torch can neither export its allocations as file descriptors nor map an imported one. A descriptor
goes over a socket into another PID namespace, which a legacy IPC handle does not survive.
"""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from data.errors import MachineError

PINNED, ON_DEVICE, AS_FD, READ_WRITE = 1, 1, 1, 3
"""CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, ..._POSIX_FILE_DESCRIPTOR, ..."""
HOST_MAPPED, AT_LEAST = 2, 0
"""CU_MEMHOSTREGISTER_DEVICEMAP, CU_STREAM_WAIT_VALUE_GEQ."""
LIBRARY = "libcuda.so.1"


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


@dataclass(frozen=True, slots=True)
class Block:
    """Device memory, mapped."""

    address: int
    size: int
    handle: int


class Driver:
    """One device through libcuda, in the context that torch uses too. Raises MachineError."""

    def __init__(self, index: int = 0) -> None:
        self._cuda = _library()
        self.index = index
        device, self._context = ctypes.c_int(), ctypes.c_void_p()
        self._do("cuDeviceGet", ctypes.byref(device), index)
        self._do("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self.enter()
        self._place = _Location(ON_DEVICE, index)
        self._properties = _Properties(PINNED, AS_FD, self._place)

    def enter(self) -> None:
        """The context becomes this thread's."""
        self._do("cuCtxSetCurrent", self._context)

    def rounded(self, size: int) -> int:
        """`size` in whole units of allocation (2 MiB on Hopper)."""
        unit = ctypes.c_size_t()
        self._do(
            "cuMemGetAllocationGranularity", ctypes.byref(unit), ctypes.byref(self._properties), 0
        )
        return max(1, -(-size // unit.value)) * unit.value

    def allocate(self, size: int) -> Block:
        """Memory that `export` can hand on; its size is rounded up."""
        whole, handle = self.rounded(size), ctypes.c_uint64()
        self._do(
            "cuMemCreate",
            *(ctypes.byref(handle), ctypes.c_size_t(whole), ctypes.byref(self._properties)),
            ctypes.c_uint64(0),
        )
        return self._mapped(handle.value, whole)

    def export(self, block: Block) -> int:
        """A descriptor of the memory, the caller's to close."""
        fd = ctypes.c_int()
        handle = ctypes.c_uint64(block.handle)
        self._do(
            "cuMemExportToShareableHandle", ctypes.byref(fd), handle, AS_FD, ctypes.c_uint64(0)
        )
        return fd.value

    def attach(self, fd: int, size: int) -> Block:
        """The memory behind a descriptor from another process; the descriptor stays open."""
        handle = ctypes.c_uint64()
        self._do("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(fd), AS_FD)
        return self._mapped(handle.value, self.rounded(size))

    def free(self, block: Block) -> None:
        """Unmaps; the memory goes when nobody maps it any more."""
        address, size = ctypes.c_uint64(block.address), ctypes.c_size_t(block.size)
        self._do("cuMemUnmap", address, size)
        self._do("cuMemAddressFree", address, size)
        self._do("cuMemRelease", ctypes.c_uint64(block.handle))

    def synchronise(self) -> None:
        """Waits for every stream of this context, also those that torch does not know."""
        self._do("cuCtxSynchronize")

    def register(self, address: int, size: int) -> int:
        """Pins memory of the host; where the device finds it."""
        place, start = ctypes.c_uint64(), ctypes.c_void_p(address)
        self._do("cuMemHostRegister_v2", start, ctypes.c_size_t(size), HOST_MAPPED)
        self._do("cuMemHostGetDevicePointer_v2", ctypes.byref(place), start, 0)
        return place.value

    def hold(self, stream: int, address: int, number: int) -> None:
        """What comes on the stream waits until the word there is at least this number."""
        where, least = ctypes.c_uint64(address), ctypes.c_uint32(number)
        self._do("cuStreamWaitValue32_v2", ctypes.c_void_p(stream), where, least, AT_LEAST)

    def reset_persisting(self) -> None:
        """Lines of the L2 cache that were made to stay become ordinary ones."""
        self._do("cuCtxResetPersistingL2Cache")

    def _mapped(self, handle: int, size: int) -> Block:
        address = ctypes.c_uint64()
        whole, none = ctypes.c_size_t(size), ctypes.c_uint64(0)
        self._do(
            "cuMemAddressReserve", ctypes.byref(address), whole, ctypes.c_size_t(0), none, none
        )
        self._do("cuMemMap", address, whole, ctypes.c_size_t(0), ctypes.c_uint64(handle), none)
        access = _Access(self._place, READ_WRITE)
        self._do("cuMemSetAccess", address, whole, ctypes.byref(access), ctypes.c_size_t(1))
        return Block(address.value, size, handle)

    def _do(self, function: str, *arguments: Any) -> None:
        code = getattr(self._cuda, function)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(code, ctypes.byref(text))
            said = text.value.decode() if text.value else "unknown"
            raise MachineError(f"{function} failed with {code}: {said}")


@cache
def _library() -> Any:
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise MachineError(f"no CUDA driver on this machine: {error}") from None
    code = cuda.cuInit(0)
    if code:
        raise MachineError(f"the CUDA driver does not start (cuInit gives {code})")
    return cuda
