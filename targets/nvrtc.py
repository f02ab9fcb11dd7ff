"""NVRTC, the CUDA compiler that is a library: it needs neither a device nor a driver.

Through ctypes, stdlib only; an export joins this to the launcher.
"""

import ctypes
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

OPTIONS = ("--std=c++17", "-lineinfo")
"""No fast-math: infinities and NaN are kept. Line information costs no register."""
_PRELUDE = """
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef signed long long int64_t; typedef unsigned long long uint64_t;
typedef int64_t intptr_t; typedef uint64_t uintptr_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define INT_MAX 0x7fffffff
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 0xffffffff
#define LLONG_MAX 0x7fffffffffffffffLL
#define LONG_MAX LLONG_MAX
#define M_PI 3.14159265358979323846
#define M_SQRT1_2 0.70710678118654752440
#define M_SQRT2 1.41421356237309504880
#define M_LOG2E 1.44269504088896340736
#define M_LN2 0.69314718055994530942
#define M_2_SQRTPI 1.12837916709551257390
"""
_HOST = ("stdint", "math", "float", "limits", "stddef", "stdio", "stdlib", "assert")
_EMPTY = (
    *(f"{name}.h" for name in _HOST),
    *(f"c{name}" for name in _HOST),
    "cuda_runtime.h",
    "device_launch_parameters.h",
)
"""Headers of the host that NVRTC lacks: what device code uses of them stands in the prelude."""


def _environment_folders() -> list[Path]:
    """Where CUDA may be: what the user names, torch's wheels, the usual place."""
    named = [os.environ[v] for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    wheels = [Path(p, "nvidia") for p in sys.path if Path(p, "nvidia").is_dir()]
    parts = [part for wheel in wheels for part in sorted(wheel.iterdir()) if part.is_dir()]
    nvcc = shutil.which("nvcc")
    beside = [Path(nvcc).resolve().parent.parent] if nvcc else []
    return [*map(Path, named), *parts, *beside, Path("/usr/local/cuda")]


def headers() -> tuple[str, ...]:
    """Folders that hold `cuda_fp16.h` and its companions; NVRTC itself searches nowhere."""
    found = [f / "include" for f in _environment_folders() if (f / "include").is_dir()]
    cuda = next((f for f in found if (f / "cuda_fp16.h").exists()), None)
    library = next((f / "cccl" for f in found if (f / "cccl").is_dir()), None)
    return tuple(str(f) for f in (cuda, library) if f is not None)


class Nvrtc:
    """The run-time compiler, a library; its errors are text."""

    def __init__(self) -> None:
        where = self.where()
        if where is None:
            raise RuntimeError("no NVRTC on this machine: pip install nvidia-cuda-nvrtc")
        for part in sorted(where.parent.glob("libnvrtc-builtins.so.*")):
            ctypes.CDLL(str(part))  # it looks for them by name alone
        self._library = ctypes.CDLL(str(where))

    @staticmethod
    def where() -> Path | None:
        """The library of torch's wheels, of the pip wheel or of a toolkit."""
        for folder in _environment_folders():
            for part in ("lib", "lib64", "bin"):
                found = sorted((folder / part).glob("libnvrtc.so.*"), key=lambda p: len(p.name))
                if found:
                    return found[0]
        return None

    def version(self) -> str:
        """Such as `NVRTC 13.0`."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        return f"NVRTC {major.value}.{minor.value}"

    def cubin(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes | None, str]:
        """The device code, None where it does not compile, and the compiler's log."""
        names = [n.encode() for n in (*_EMPTY, "kforge_prelude.h")]
        texts = [b""] * len(_EMPTY) + [_PRELUDE.encode()]
        program = ctypes.c_void_p()
        kind = ctypes.c_char_p * len(names)
        code = source.encode(errors="replace")
        self._check(
            self._library.nvrtcCreateProgram(
                ctypes.byref(program), code, name.encode(), len(names), kind(*texts), kind(*names)
            )
        )
        given = [o.encode() for o in (*options, "--pre-include=kforge_prelude.h")]
        flags = (ctypes.c_char_p * len(given))(*given)
        status = self._library.nvrtcCompileProgram(program, len(given), flags)
        log = self._take(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        image = self._take(program, "CUBIN") if status == 0 else None
        self._library.nvrtcDestroyProgram(ctypes.byref(program))
        return image, log or ("" if image else self._message(status))

    def _take(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(self._library[f"nvrtcGet{what}Size"](program, ctypes.byref(size)))
        data = ctypes.create_string_buffer(max(size.value, 1))
        self._check(self._library[f"nvrtcGet{what}"](program, data))
        return data.raw[: size.value]

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(self._message(status))

    def _message(self, status: int) -> str:
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        text: bytes = self._library.nvrtcGetErrorString(status)
        return f"error: {text.decode()}"


def command(source: Path, product: Path, arch: str) -> tuple[str, ...]:
    """What `run` takes, in the form of a command line; includes are those of this machine."""
    includes = [f"-I{folder}" for folder in headers()]
    options = (f"--gpu-architecture={arch}", *OPTIONS, "--ptxas-options=-v", *includes)
    return ("nvrtc", *options, "-o", str(product), str(source))


def run(words: Sequence[str]) -> int:
    """Runs what `command` gave in this process; 0 when the file was written."""
    *options, _, product, source = words[1:]
    image, log = Nvrtc().cubin(Path(source).read_text(), Path(source).name, options)
    with open(2, "w", errors="replace", closefd=False) as stderr:  # sys.stderr may be elsewhere
        stderr.write(log)
    if image is None:
        return 1
    Path(product).write_bytes(image)
    return 0
