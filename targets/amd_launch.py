"""HIP in the launcher: hiprtc compiles, the HIP runtime loads and launches.

For hosts with ROCm, through ctypes, stdlib only. No AMD device was at hand: the calls follow HIP's
documentation and have not been run.
"""

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class CodeObject:
    """Compiled kernels, loaded on each device when one of them is first launched there."""

    image: bytes
    modules: dict[int, ctypes.c_void_p] = field(default_factory=dict)


class HipHalf:
    """HIP: code objects by hiprtc, launches by the runtime on torch's current stream."""

    languages, place = ("hip",), "cuda"
    source, product = "kernel.hip", "kernel.hsaco"
    pointers = {  # noqa: RUF012 (a constant)
        "float2": ("float32",),
        "float4": ("float32",),
        "double2": ("float64",),
        "int2": ("int32",),
        "int4": ("int32",),
        "uint4": (),
        "half": ("float16",),
        "__half": ("float16",),
        "half2": ("float16",),
        "__half2": ("float16",),
        "hip_bfloat16": ("bfloat16",),
        "__hip_bfloat16": ("bfloat16",),
    }

    def as_c(self, source: str) -> str:
        """Without the words that only a device compiler knows; device functions are private."""
        text = re.sub(r"\b__launch_bounds__\s*\([^()]*\)", " ", source)
        text = re.sub(r"\b__device__\b", " static ", text)
        return re.sub(r"\b(?:__global__|__host__|__restrict__)\b", " ", text)

    def hollow(self, language: str, kernels: Mapping[str, Sequence[str]]) -> str:  # noqa: ARG002
        return "\n".join(f'extern "C" __global__ void {name}() {{}}' for name in kernels)

    def tag(self) -> str:
        return f"-{self.arch()}"

    def arch(self) -> str:
        """Of the current device, such as `gfx942`."""
        import torch  # noqa: PLC0415 (only where something is launched)

        name: str = torch.cuda.get_device_properties().gcnArchName
        return name.partition(":")[0]

    def compile(self, language: str, source: Path, product: Path) -> None:  # noqa: ARG002 (one)
        """RuntimeError with the compiler's text."""
        rtc, program = _library("libhiprtc.so"), ctypes.c_void_p()
        text, name = source.read_bytes(), source.name.encode()
        rtc.hiprtcCreateProgram(ctypes.byref(program), text, name, 0, None, None)
        options = [o.encode() for o in (f"--offload-arch={self.arch()}", "-O3", "-std=c++17")]
        flags = (ctypes.c_char_p * len(options))(*options)
        failed = rtc.hiprtcCompileProgram(program, len(options), flags)
        if failed:
            raise RuntimeError(_taken(rtc, program, "ProgramLog").decode(errors="replace"))
        product.write_bytes(_taken(rtc, program, "Code"))
        rtc.hiprtcDestroyProgram(ctypes.byref(program))

    def load(self, product: Path) -> CodeObject:
        return CodeObject(product.read_bytes())

    def bind(self, loaded: CodeObject, name: str, kinds: Sequence[Any]) -> Callable[..., None]:
        """The launch; the function is looked up on the current device when it is first called."""
        functions: dict[int, ctypes.c_void_p] = {}
        many = ctypes.c_void_p * max(len(kinds), 1)

        def launch(
            values: Sequence[Any], grid: Any, block: Any, shared: int, _: Sequence[Any]
        ) -> None:
            import torch  # noqa: PLC0415

            device = torch.cuda.current_device()
            if device not in functions:
                functions[device] = _function(loaded, name, device)
            held = [kind(value) for kind, value in zip(kinds, values, strict=True)]
            size = [ctypes.c_uint(n) for n in (*_three(grid), *_three(block), shared)]
            stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
            arguments = many(*[ctypes.addressof(h) for h in held])
            status = _library("libamdhip64.so").hipModuleLaunchKernel(
                functions[device], *size, stream, arguments, None
            )
            _check(status, f"the launch of {name} grid={grid} block={block} shared={shared}")

        return launch


def _function(loaded: CodeObject, name: str, device: int) -> ctypes.c_void_p:
    """The kernel in the code object, which is loaded on the device of torch's context."""
    runtime = _library("libamdhip64.so")
    if device not in loaded.modules:
        module = ctypes.c_void_p()
        _check(runtime.hipModuleLoadData(ctypes.byref(module), loaded.image), "loading the kernels")
        loaded.modules[device] = module
    function = ctypes.c_void_p()
    status = runtime.hipModuleGetFunction(
        ctypes.byref(function), loaded.modules[device], name.encode()
    )
    _check(status, f"finding {name} in the compiled kernels")
    return function


def _library(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise RuntimeError(f"no ROCm on this machine: {error}") from None


def _taken(rtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    """The log or the code of a program of hiprtc."""
    size = ctypes.c_size_t()
    rtc[f"hiprtcGet{what}Size"](program, ctypes.byref(size))
    data = ctypes.create_string_buffer(max(size.value, 1))
    rtc[f"hiprtcGet{what}"](program, data)
    return data.raw[: size.value]


def _check(status: int, what: str) -> None:
    if status:
        runtime = _library("libamdhip64.so")
        runtime.hipGetErrorString.restype = ctypes.c_char_p
        text: bytes = runtime.hipGetErrorString(status)
        raise RuntimeError(f"{what} failed: {text.decode()}")


def _three(given: Any) -> tuple[int, int, int]:
    """Grid or block as three numbers; ValueError unless it is one to three positive ints."""
    sizes = (given,) if isinstance(given, int) else tuple(given or ())
    if not 1 <= len(sizes) <= 3 or any(not isinstance(s, int) or s < 1 for s in sizes):
        raise ValueError(f"grid and block must be one to three positive ints, got {given!r}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


HIP = HipHalf()
