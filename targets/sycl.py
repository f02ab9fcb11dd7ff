"""SYCL from a source string: the compiler in Intel's SYCL run time, a library, makes SPIR-V of it.

Through ctypes, stdlib only; an export joins this to the launcher. `compileSYCL` of libsycl-jit is
what `sycl_ext_oneapi_kernel_compiler` calls: taken directly, it needs no C++ compiler, no
libsycl and no headers of its own. OpenCL builds the SPIR-V for the processor and runs it; ocloc
builds the same for a GPU.
"""

import ctypes
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from targets.closure import alone
from targets.opencl import Opencl, intel_library
from targets.remote.ocloc import gpu_report

FLAGS = ("-std=c++17", "-O3", "-fno-fast-math", "-fno-sycl-dead-args-optimization")
"""Infinities and NaN are kept; every parameter stays one, so that arguments keep their places."""
SPIRV = 2
"""BinaryFormat::SPIRV."""
MAGIC = b"\x03\x02\x23\x07"
PREFIX = "__sycl_kernel_"
"""Before the name of a free function that is a kernel."""
_FRAME_OF_LOG = re.compile(
    r"^(?:Device compilation failed|Detailed information:)\n?|^\t(?=\S)", re.MULTILINE
)
SYCL_GPU = "-gpu="
SYCL_INSTALL = "pip install intel-sycl-rt intel-opencl-rt"


class InMemoryFile(ctypes.Structure):
    _fields_ = (("path", ctypes.c_char_p), ("contents", ctypes.c_char_p))


class View(ctypes.Structure):
    """Of memory that is not its own; also `DynArray`, which has the same form."""

    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


class DeviceImage(ctypes.Structure):
    """RTCDevImgInfo."""

    _fields_ = (
        ("form", ctypes.c_uint32),
        ("address_bits", ctypes.c_uint64),
        ("start", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("symbols", View),
        ("properties", View),
    )


class Compilation(ctypes.Structure):
    """RTCResult; a `sycl::detail::string` is one pointer."""

    _fields_ = (
        ("code", ctypes.c_int),
        ("images", View),
        ("options", ctypes.c_char_p),
        ("device_code", View),
        ("log", ctypes.c_char_p),
        ("room", ctypes.c_char * 256),
    )
    """The room is for what another release may add."""


def sycl_library() -> Path | None:
    """The compiler of Intel's SYCL run time, where its OpenCL is too: PoCL takes no SPIR-V."""
    if intel_library() is None:
        return None
    folders = [Path(sys.prefix, "lib"), *sorted(Path("/opt/intel/oneapi").glob("compiler/*/lib"))]
    return next((f / "libsycl-jit.so" for f in folders if (f / "libsycl-jit.so").exists()), None)


def sycl_release(found: Path) -> str:
    """The number in the name of the file beside it."""
    numbered = sorted(found.parent.glob(f"{found.name}.*[0-9]"), key=lambda p: len(p.name))
    return f"Intel SYCL {(numbered or [found])[-1].name.partition('.so.')[2]}"


def spirv(source: str, name: str) -> tuple[tuple[bytes, ...], str]:
    """SPIR-V of the kernels, none where they do not compile, and the compiler's log.

    Kernels that need different features of a device are in different images.
    """
    found = sycl_library()
    if found is None:
        raise RuntimeError(f"no SYCL compiler on this machine: {SYCL_INSTALL}")
    library = ctypes.CDLL(str(found))
    words = (ctypes.c_char_p * len(FLAGS))(*(flag.encode() for flag in FLAGS))
    result, nothing = Compilation(), View()
    library.compileSYCL.restype = None
    library.compileSYCL(
        ctypes.byref(result),
        InMemoryFile(name.encode(), source.encode(errors="replace")),
        nothing,
        View(ctypes.addressof(words), len(words)),
        nothing,
        ctypes.c_bool(False),  # noqa: FBT003 (to a C function)
        ctypes.c_uint32(SPIRV),
    )
    log = _FRAME_OF_LOG.sub("", (result.log or b"").decode(errors="replace")).strip()
    return ((), log) if result.code else (_codes(result), log)


def _codes(result: Compilation) -> tuple[bytes, ...]:
    """Of its images. RuntimeError when the library answers in another form."""
    images = (DeviceImage * result.images.length).from_address(result.images.start or 0)
    codes = tuple(ctypes.string_at(i.start, i.size) for i in images if i.form == SPIRV)
    if not all(code.startswith(MAGIC) for code in codes) or len(codes) != len(images):
        raise RuntimeError("this release of libsycl-jit answers in a form that is not 2026.2's")
    return codes


def sycl_build(source: str, name: str, gpu: str = "") -> tuple[bytes | None, str]:
    """The binaries for the processor as one, None where they do not compile.

    Then the compilers' messages, a line a kernel with the memory that it takes, and for `gpu` what
    its own compiler says of the same SPIR-V.
    """
    codes, said = spirv(source, name)
    if not codes:
        return None, said or "error: no kernel in the source; one has the property nd_range_kernel"
    run_time, binaries, told, right = Opencl(intel_library()), list[bytes](), [said], True
    for code in codes:
        binary, usages = run_time.build_spirv(code, name)
        ok, more = _for_gpu(code, gpu) if binary is not None and gpu else (True, "")
        right = right and ok and binary is not None
        binaries.append(binary or b"")
        told += [usages.replace(PREFIX, ""), more.replace(PREFIX, "")]
    return joined_binary(binaries) if right else None, "\n".join(filter(None, told))


def _for_gpu(code: bytes, gpu: str) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory(prefix="sycl-") as folder:
        file = Path(folder, "kernel.spv")
        file.write_bytes(code)
        return gpu_report(file, gpu)


def joined_binary(binaries: Sequence[bytes]) -> bytes:
    """Several as one, which `parted_binary` takes apart.

    >>> parted_binary(joined_binary([b"a", b"", b"bc"]))
    (b'a', b'', b'bc')
    """
    return json.dumps([len(b) for b in binaries]).encode() + b"\n" + b"".join(binaries)


def parted_binary(whole: bytes) -> tuple[bytes, ...]:
    head, _, rest = whole.partition(b"\n")
    parts, at = list[bytes](), 0
    for length in json.loads(head):
        parts.append(rest[at : at + length])
        at += length
    return tuple(parts)


def sycl_command(source: Path, product: Path, gpu: str = "") -> tuple[str, ...]:
    """What `sycl_run` takes, as a command line; `gpu` is one that ocloc shall build for."""
    asked = (f"{SYCL_GPU}{gpu}",) if gpu else ()
    return ("sycl", *FLAGS, *asked, "-o", str(product), str(source))


def compile_sycl(words: Sequence[str]) -> int:
    """Compiles in this process what `sycl_command` gave; 0 when the file was written."""
    product, source = words[-2:]
    gpu = next((w.removeprefix(SYCL_GPU) for w in words if w.startswith(SYCL_GPU)), "")
    binary, log = sycl_build(Path(source).read_text(), Path(source).name, gpu)
    with open(2, "w", errors="replace", closefd=False) as stderr:  # sys.stderr may be elsewhere
        stderr.write(log)
    if binary is None:
        return 1
    Path(product).write_bytes(binary)
    return 0


sycl_run = alone(__name__, compile_sycl.__name__)
