"""What NVML says of an NVIDIA device, by ctypes: it needs no context and disturbs nothing."""

import contextlib
import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
SM, MEMORY = 1, 2
"""nvmlClockType_t."""
REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}
"""nvmlClocksThrottleReasons."""
HARMLESS = 0x1 | 0x2 | 0x100


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t, version 2 and 3 of the call."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at the device; None where it does not say."""

    sm_mhz: int | None
    memory_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    throttled: str
    """Reasons in words; empty when the clocks are the device's own choice."""

    def told(self) -> dict[str, str]:
        facts = {
            "sm_mhz": self.sm_mhz,
            "memory_mhz": self.memory_mhz,
            "temperature_c": self.temperature_c,
            "power_w": self.power_w,
            "throttled": self.throttled or "no",
        }
        return {k: str(v) for k, v in facts.items() if v is not None}


def reading(index: int) -> Reading:
    device = _device(index)
    reasons = _number(device, "nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong)
    power = _number(device, "nvmlDeviceGetPowerUsage")
    words = [name for bit, name in REASONS.items() if (reasons or 0) & bit & ~HARMLESS]
    return Reading(
        sm_mhz=_number(device, "nvmlDeviceGetClockInfo", ctypes.c_uint, SM),
        memory_mhz=_number(device, "nvmlDeviceGetClockInfo", ctypes.c_uint, MEMORY),
        temperature_c=_number(device, "nvmlDeviceGetTemperature", ctypes.c_uint, 0),
        power_w=None if power is None else power / 1000,
        throttled=", ".join(words),
    )


def uuid(index: int) -> str:
    """Empty where there is no NVML or no such device."""
    device = _device(index)
    return "" if device is None else _text(device, "nvmlDeviceGetUUID")


def identity(index: int) -> dict[str, str]:
    """Name, UUID and driver; empty values where there is no NVML."""
    device = _device(index)
    return {
        "device": "" if device is None else _text(device, "nvmlDeviceGetName"),
        "uuid": uuid(index),
        "driver": _text(None, "nvmlSystemGetDriverVersion"),
    }


def used_bytes(index: int) -> int:
    """Of the device's memory, by everybody; 0 where there is no NVML."""
    device, found = _device(index), (ctypes.c_ulonglong * 3)()
    if device is None or _library().nvmlDeviceGetMemoryInfo(device, found):
        return 0
    return int(found[2])


def processes(index: int) -> frozenset[int]:
    """Numbers of the processes that hold a context on the device, as this host counts them."""
    device, library = _device(index), _library()
    if device is None:
        return frozenset()
    count = ctypes.c_uint(256)
    found = (_Process * count.value)()
    code = library.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), found)
    return frozenset(p.pid for p in found[: count.value]) if code == 0 else frozenset()


@cache
def _library() -> Any:
    """None where NVML is not there or does not start."""
    with contextlib.suppress(OSError):
        library = ctypes.CDLL(LIBRARY)
        if library.nvmlInit_v2() == 0:
            return library
    return None


def _device(index: int) -> ctypes.c_void_p | None:
    library, device = _library(), ctypes.c_void_p()
    if library is None or library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)):
        return None
    return device


def _number(device: Any, function: str, kind: Any = ctypes.c_uint, *which: int) -> int | None:
    value = kind()
    if device is None or getattr(_library(), function)(device, *which, ctypes.byref(value)):
        return None
    return int(value.value)


def _text(device: Any, function: str) -> str:
    library, text = _library(), ctypes.create_string_buffer(96)
    if library is None:
        return ""
    arguments = (text, 96) if device is None else (device, text, 96)
    return text.value.decode() if getattr(library, function)(*arguments) == 0 else ""
