"""CUDA C in the launcher: NVRTC compiles, the driver loads and launches.

Through ctypes, stdlib only; an export joins this and `nvrtc` to the launcher.
torch is there when a kernel is launched; its stream and its context are used.
"""

import ctypes
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from targets.nvrtc import Nvrtc, command

SPECIFIC = {90, 100, 103, 110, 120, 121}
"""Compute capabilities whose own instructions (wgmma, tcgen05, TMA forms) need the suffix `a`."""
STATIC_SHARED = 48 << 10
"""Bytes of dynamic shared memory that need no attribute."""


@dataclass(frozen=True, slots=True)
class Cubin:
    """Compiled kernels, loaded on each device when one of them is first launched there."""

    image: bytes
    modules: dict[int, ctypes.c_void_p] = field(default_factory=dict)


class CudaHalf:
    """CUDA C: cubins by NVRTC, launches by the driver on torch's current stream."""

    languages, place = ("cuda",), "cuda"
    source, product = "kernel.cu", "kernel.cubin"
    pointers = {  # noqa: RUF012 (a constant)
        "float2": ("float32",),
        "float4": ("float32",),
        "double2": ("float64",),
        "int2": ("int32",),
        "int4": ("int32",),
        "uint2": ("uint32", "int32"),
        "uint4": (),
        "half": ("float16",),
        "__half": ("float16",),
        "half2": ("float16",),
        "__half2": ("float16",),
        "nv_bfloat16": ("bfloat16",),
        "__nv_bfloat16": ("bfloat16",),
        "nv_bfloat162": ("bfloat16",),
        "__nv_bfloat162": ("bfloat16",),
        "__nv_fp8_e4m3": ("float8_e4m3fn",),
        "__nv_fp8_e5m2": ("float8_e5m2",),
    }

    def as_c(self, source: str) -> str:
        """Without the words that only a device compiler knows; device functions are private."""
        bounds = r"\b(?:__launch_bounds__|__cluster_dims__|__maxnreg__|__block_size__)\s*\([^()]*\)"
        text = re.sub(bounds, " ", source)
        text = re.sub(r"\b__device__\b", " static ", text)
        return re.sub(r"\b(?:__global__|__host__|__grid_constant__|__restrict__)\b", " ", text)

    def hollow(self, language: str, kernels: Mapping[str, Sequence[str]]) -> str:  # noqa: ARG002
        return "\n".join(f'extern "C" __global__ void {name}() {{}}' for name in kernels)

    def tag(self) -> str:
        return f"-{self.arch()}"

    def arch(self) -> str:
        """Of the current device, such as `sm_90a`."""
        import torch  # noqa: PLC0415 (only where something is launched)

        major, minor = torch.cuda.get_device_capability()
        number = 10 * major + minor
        return f"sm_{number}{'a' if number in SPECIFIC else ''}"

    def compile(self, language: str, source: Path, product: Path) -> None:  # noqa: ARG002 (one)
        """RuntimeError with the compiler's text."""
        options = command(source, product, self.arch())[1:-3]
        image, log = Nvrtc().cubin(source.read_text(), source.name, options)
        if image is None:
            raise RuntimeError(log)
        product.write_bytes(image)

    def load(self, product: Path) -> Cubin:
        return Cubin(product.read_bytes())

    def bind(self, loaded: Cubin, name: str, kinds: Sequence[Any]) -> Callable[..., None]:
        """The launch; the function is looked up on the current device when it is first called."""
        functions: dict[int, _Function] = {}
        count, many = len(kinds), ctypes.c_void_p * max(len(kinds), 1)

        def launch(
            values: Sequence[Any], grid: Any, block: Any, shared: int, _: Sequence[Any]
        ) -> None:
            import torch  # noqa: PLC0415

            device = torch.cuda.current_device()
            if device not in functions:
                functions[device] = self._function(loaded, name, device)
            held = [kind(value) for kind, value in zip(kinds, values, strict=True)]
            arguments = many(*[ctypes.addressof(h) for h in held]) if count else None
            size = (*_three("grid", grid), *_three("block", block))
            functions[device].launch(size, shared, torch.cuda.current_stream(device), arguments)

        return launch

    def _function(self, loaded: Cubin, name: str, device: int) -> "_Function":
        driver = _driver()
        driver.enter(device)
        if device not in loaded.modules:
            loaded.modules[device] = driver.module(loaded.image)
        return _Function(driver, name, device, driver.function(loaded.modules[device], name))


class _Function:
    """A kernel on one device."""

    def __init__(self, driver: "Driver", name: str, device: int, handle: ctypes.c_void_p) -> None:
        self._driver, self._name, self._device, self._handle = driver, name, device, handle
        self._allowed = STATIC_SHARED

    def launch(self, size: tuple[int, ...], shared: int, stream: Any, arguments: Any) -> None:
        """Puts the kernel on the stream. RuntimeError when the driver refuses."""
        if shared > self._allowed:
            self._driver.allow_shared(self._handle, shared, self._name)
            self._allowed = shared
        given = (*size, shared, ctypes.c_void_p(stream.cuda_stream), arguments, None)
        status = self._driver.library.cuLaunchKernel(self._handle, *given)
        if status == Driver.INVALID_CONTEXT:  # a thread that has not used the device before
            self._driver.enter(self._device)
            status = self._driver.library.cuLaunchKernel(self._handle, *given)
        if status:
            what = f"{self._name} grid={size[:3]} block={size[3:]} shared={shared}"
            raise RuntimeError(f"the launch of {what} failed: {self._driver.message(status)}")


@functools.cache
def _driver() -> "Driver":
    return Driver()


class Driver:
    """libcuda: modules, functions, errors; it shares the primary contexts with torch."""

    INVALID_CONTEXT = 201
    MAX_DYNAMIC_SHARED = 8
    """CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""

    def __init__(self) -> None:
        names = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
        found = None
        for name in names:
            try:
                found = ctypes.CDLL(name)
                break
            except OSError:
                continue
        if found is None:
            raise RuntimeError("no NVIDIA driver on this machine: libcuda.so.1 is missing")
        self.library = found
        self.library.cuLaunchKernel.argtypes = [
            ctypes.c_void_p,
            *[ctypes.c_uint] * 7,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        self._check(found.cuInit(0), "cuInit")

    def enter(self, device: int) -> None:
        """Makes torch's context of the device the calling thread's."""
        import torch  # noqa: PLC0415

        torch.cuda.init()
        handle, context = ctypes.c_int(), ctypes.c_void_p()
        self._check(self.library.cuDeviceGet(ctypes.byref(handle), device), "cuDeviceGet")
        retain = self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
        self._check(retain, "cuDevicePrimaryCtxRetain")
        self._check(self.library.cuCtxSetCurrent(context), "cuCtxSetCurrent")

    def module(self, image: bytes) -> ctypes.c_void_p:
        """The cubin on the device of the current context."""
        module = ctypes.c_void_p()
        status = self.library.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(image))
        self._check(status, "the device does not take the compiled kernel")
        return module

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        status = self.library.cuModuleGetFunction(ctypes.byref(handle), module, name.encode())
        self._check(status, f"{name} is no __global__ function of the source")
        return handle

    def allow_shared(self, function: ctypes.c_void_p, size: int, name: str) -> None:
        """More dynamic shared memory than a kernel has unasked."""
        status = self.library.cuFuncSetAttribute(function, self.MAX_DYNAMIC_SHARED, size)
        self._check(status, f"{name}: {size} bytes of dynamic shared memory are too many")

    def message(self, status: int) -> str:
        """Such as `CUDA_ERROR_INVALID_VALUE: invalid argument`."""
        parts = []
        for get in (self.library.cuGetErrorName, self.library.cuGetErrorString):
            text = ctypes.c_char_p()
            get(status, ctypes.byref(text))
            parts.append((text.value or b"unknown").decode())
        return ": ".join(parts)

    def _check(self, status: int, what: str) -> None:
        if status:
            raise RuntimeError(f"{what}: {self.message(status)}")


def _three(what: str, given: Any) -> tuple[int, int, int]:
    """Grid or block as three numbers; ValueError unless it is one to three positive ints."""
    sizes = (given,) if isinstance(given, int) else tuple(given or ())
    if not 1 <= len(sizes) <= 3 or any(not isinstance(s, int) or s < 1 for s in sizes):
        raise ValueError(f"{what} must be one to three positive ints, got {given!r}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


CUDA = CudaHalf()
