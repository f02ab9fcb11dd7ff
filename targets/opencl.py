"""OpenCL on the processor: Intel's run time where it is installed, PoCL else.

Through ctypes, stdlib only; an export joins this to the launcher. Intel's library is loaded by its
path: the vendor file of its package names a folder of the machine that built it.
"""

import ctypes
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from targets.closure import alone
from targets.remote.ocloc import gpu_report

OPTIONS = ("-cl-std=CL3.0",)
"""The default is OpenCL C 1.2, without sub-groups. No fast-math: infinities and NaN are kept."""
GPU = "-gpu="
INSTALL = "pip install intel-opencl-rt intel-cmplr-lib-rt, or apt-get install pocl-opencl-icd"
SYSTEM_POINTERS = 4
"""CL_DEVICE_SVM_FINE_GRAIN_SYSTEM: a kernel takes any address of the process."""
ERRORS = {
    -4: "MEM_OBJECT_ALLOCATION_FAILURE", -5: "OUT_OF_RESOURCES", -6: "OUT_OF_HOST_MEMORY",
    -11: "BUILD_PROGRAM_FAILURE", -30: "INVALID_VALUE", -42: "INVALID_BINARY",
    -46: "INVALID_KERNEL_NAME", -49: "INVALID_ARG_INDEX", -50: "INVALID_ARG_VALUE",
    -51: "INVALID_ARG_SIZE", -52: "INVALID_KERNEL_ARGS", -54: "INVALID_WORK_GROUP_SIZE",
    -55: "INVALID_WORK_ITEM_SIZE", -63: "INVALID_GLOBAL_WORK_SIZE",
}  # fmt: skip


_INTEL = re.compile(r"^\d+:(?P<at>\d+:\d+): ", re.MULTILINE)
_POCL = re.compile(
    r"^(?P<kind>error|warning): \S*tempfile\w*\.cl:(?P<at>\d+:\d+): (?:(?:error|warning): )?",
    re.MULTILINE,
)
_FRAME = re.compile(r"^(?:Compilation \w+|Device .* failed to build the program)\n?", re.MULTILINE)


def intel_library() -> Path | None:
    """Intel's run time for processors, of its pip package or of oneAPI, with what it links to."""
    folders = [Path(sys.prefix, "lib"), *sorted(Path("/opt/intel/oneapi").glob("compiler/*/lib"))]
    for folder in folders:
        if (folder / "libintelocl.so").exists() and (folder / "libimf.so").exists():
            return folder / "libintelocl.so"
    return None


def pocl_library() -> Path | None:
    """PoCL of the system, which the system's loader finds."""
    found = [p for p in Path("/usr").glob("lib*/**/libpocl.so.2") if p.exists()]
    return found[0] if found else None


def library() -> Path | None:
    """The run time that is used; None where there is none."""
    return intel_library() or pocl_library()


def release(found: Path) -> str:
    """Name and version by the file's name: a loaded run time has threads, which no fork keeps.

    >>> release(Path("libpocl.so.2.10.0"))
    'PoCL, libpocl 2.10.0'
    """
    numbered = sorted(found.parent.glob(f"{found.name}.*[0-9]"), key=lambda p: len(p.name))
    name, _, number = (numbered or [found])[-1].name.partition(".so.")
    return f"PoCL, {name} {number}" if name == "libpocl" else f"Intel OpenCL {number}"


class Opencl:
    """The run time with a context and a queue on the processor. RuntimeError without one."""

    def __init__(self, found: Path | None = None) -> None:
        found = found or library()
        if found is None:
            raise RuntimeError(f"no OpenCL for processors on this machine: {INSTALL}")
        intel = found.name.startswith("libintelocl")
        self.library = ctypes.CDLL(str(found) if intel else "libOpenCL.so.1")
        self.device = self._processor("Intel" if intel else "Portable")
        status = ctypes.c_int()
        self.context = self._made("clCreateContext", None, 1, self._array(self.device), None, None)
        create = self._function("clCreateCommandQueue")
        handle = create(self.context, self.device, ctypes.c_ulong(0), ctypes.byref(status))
        self.check(status.value, "clCreateCommandQueue")
        self.queue = ctypes.c_void_p(handle)
        shared = self._info("clGetDeviceInfo", self.device, 0x1053)
        self.takes_addresses = bool(int.from_bytes(shared, "little") & SYSTEM_POINTERS)

    def build(self, source: str, name: str = "kernel.cl") -> tuple[bytes | None, str]:
        """The program's binary, None where it does not compile, and the compiler's log.

        Messages begin as clang's: `name:line:column: error: `. Then comes a line a kernel with the
        memory that it takes.
        """
        text = ctypes.c_char_p(source.encode(errors="replace"))
        create = "clCreateProgramWithSource"
        program = self._made(create, self.context, 1, ctypes.byref(text), None)
        return self._built(program, name, OPTIONS)

    def build_spirv(self, code: bytes, name: str) -> tuple[bytes | None, str]:
        """As `build`, from SPIR-V."""
        length = ctypes.c_size_t(len(code))
        program = self._made("clCreateProgramWithIL", self.context, code, length)
        return self._built(program, name, ())

    def _built(
        self, program: ctypes.c_void_p, name: str, options: Sequence[str]
    ) -> tuple[bytes | None, str]:
        status = self._build(program, options)
        log = plain(self._log(program), name)
        if status:
            return None, log or f"error: {self.message(status)}"
        size = int.from_bytes(self._info("clGetProgramInfo", program, 0x1165)[:8], "little")
        binary = ctypes.create_string_buffer(size)
        place = (ctypes.c_void_p * 1)(ctypes.addressof(binary))
        status = self.library.clGetProgramInfo(program, 0x1166, ctypes.sizeof(place), place, None)
        self.check(status, "clGetProgramInfo")
        usages = self._usages(program)  # PoCL refuses a binary that is taken after this
        self.library.clReleaseProgram(program)
        return binary.raw, "\n".join(filter(None, (log, *usages)))

    def load(self, binary: bytes) -> ctypes.c_void_p:
        """The program of what `build` gave."""
        size, start = ctypes.c_size_t(len(binary)), ctypes.c_char_p(binary)
        given = (self.context, 1, self._array(self.device), ctypes.byref(size))
        program = self._made("clCreateProgramWithBinary", *given, ctypes.byref(start), None)
        status = self._build(program, ())
        self.check(status, f"the compiled kernel is refused: {self._log(program)}")
        return program

    def kernel(self, program: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        return self._made("clCreateKernel", program, name.encode())

    def buffer(self, address: int, size: int) -> ctypes.c_void_p:
        """The memory at an address as an object of the device."""
        use = ctypes.c_ulong(1 | 8)  # CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR
        create = "clCreateBuffer"
        return self._made(
            create, self.context, use, ctypes.c_size_t(size), ctypes.c_void_p(address)
        )

    def give_back(self, buffer: ctypes.c_void_p, size: int) -> None:
        """Makes what kernels wrote visible at the buffer's address, and forgets the buffer."""
        status, both = ctypes.c_int(), ctypes.c_ulong(1 | 2)  # read, write
        extent = (ctypes.c_size_t(0), ctypes.c_size_t(size))
        enqueue = self._function("clEnqueueMapBuffer")
        waiting = (0, None, None)
        given = (self.queue, buffer, 1, both, *extent, *waiting, ctypes.byref(status))
        place = enqueue(*given)
        self.check(status.value, "clEnqueueMapBuffer")
        self.library.clEnqueueUnmapMemObject(self.queue, buffer, ctypes.c_void_p(place), *waiting)
        self.library.clFinish(self.queue)
        self.library.clReleaseMemObject(buffer)

    def message(self, status: int) -> str:
        """Such as `CL_INVALID_WORK_GROUP_SIZE`."""
        return f"CL_{ERRORS.get(status, 'ERROR')} ({status})"

    def check(self, status: int, what: str) -> None:
        if status:
            raise RuntimeError(f"{what}: {self.message(status)}")

    def _processor(self, platform: str) -> ctypes.c_void_p:
        """The first processor of the platform whose name begins so."""
        platforms, count = (ctypes.c_void_p * 16)(), ctypes.c_uint()
        self.check(self.library.clGetPlatformIDs(16, platforms, ctypes.byref(count)), platform)
        for number in platforms[: count.value]:
            found, device = ctypes.c_void_p(number), ctypes.c_void_p()
            name = self._info("clGetPlatformInfo", found, 0x0902).decode()
            processors = ctypes.c_ulong(2)  # CL_DEVICE_TYPE_CPU
            get = self.library.clGetDeviceIDs
            if name.startswith(platform) and not get(
                found, processors, 1, ctypes.byref(device), None
            ):
                return device
        raise RuntimeError(f"{platform} OpenCL names no processor here: {INSTALL}")

    def _usages(self, program: ctypes.c_void_p) -> list[str]:
        """Bytes of a group and of a thread, and the width of a sub-group, a line a kernel."""
        names = self._info("clGetProgramInfo", program, 0x1168).rstrip(b"\0").decode()
        lines = []
        for name in filter(None, names.split(";")):
            kernel = self.kernel(program, name)
            local, width, private = (
                int.from_bytes(
                    self._info("clGetKernelWorkGroupInfo", kernel, self.device, what), "little"
                )
                for what in (0x11B2, 0x11B3, 0x11B4)
            )
            self.library.clReleaseKernel(kernel)
            lines.append(f"usage {name}: local {local}, private {private}, multiple {width}")
        return lines

    def _build(self, program: ctypes.c_void_p, options: Sequence[str]) -> int:
        words, devices = " ".join(options).encode(), self._array(self.device)
        status: int = self.library.clBuildProgram(program, 1, devices, words, None, None)
        return status

    def _log(self, program: ctypes.c_void_p) -> str:
        log = self._info("clGetProgramBuildInfo", program, self.device, 0x1183)
        return log.rstrip(b"\0").decode(errors="replace").strip()

    def _info(self, function: str, *what: Any) -> bytes:
        size, get = ctypes.c_size_t(), self.library[function]
        self.check(get(*what, ctypes.c_size_t(0), None, ctypes.byref(size)), function)
        data = ctypes.create_string_buffer(max(size.value, 1))
        self.check(get(*what, size, data, None), function)
        return data.raw[: size.value].rstrip(b"\0") if function == "clGetPlatformInfo" else data.raw

    def _made(self, function: str, *given: Any) -> ctypes.c_void_p:
        """The object that a function makes, which takes its status at the end."""
        status = ctypes.c_int()
        handle = self._function(function)(*given, ctypes.byref(status))
        self.check(status.value, function)
        return ctypes.c_void_p(handle)

    def _function(self, name: str) -> Any:
        """One that returns a pointer, which would be cut to an int."""
        function = self.library[name]
        function.restype = ctypes.c_void_p
        return function

    @staticmethod
    def _array(device: ctypes.c_void_p) -> Any:
        return (ctypes.c_void_p * 1)(device.value)


def plain(log: str, name: str) -> str:
    r"""A run time's log with the messages as clang prints them.

    >>> plain("error: /tmp/tempfile_x.cl:1:42: no such thing", "kernel.cl")
    'kernel.cl:1:42: error: no such thing'
    >>> plain("Compilation started\n1:2:57: error: no\nCompilation failed", "kernel.cl")
    'kernel.cl:2:57: error: no'
    """
    text = _FRAME.sub("", log)
    text = _INTEL.sub(rf"{name}:\g<at>: ", text)
    return _POCL.sub(rf"{name}:\g<at>: \g<kind>: ", text).strip()


def command(source: Path, product: Path, gpu: str = "") -> tuple[str, ...]:
    """What `run` takes, in the form of a command line; `gpu` is one that ocloc shall build for."""
    asked = (f"{GPU}{gpu}",) if gpu else ()
    return ("opencl", *OPTIONS, *asked, "-o", str(product), str(source))


def compile_file(words: Sequence[str]) -> int:
    """Compiles in this process what `command` gave; 0 when the file was written."""
    product, source = words[-2:]
    binary, log = Opencl().build(Path(source).read_text(), Path(source).name)
    asked = [w.removeprefix(GPU) for w in words if w.startswith(GPU)]
    gpus = [gpu_report(Path(source), gpu) for gpu in asked if binary is not None]
    with open(2, "w", errors="replace", closefd=False) as stderr:  # sys.stderr may be elsewhere
        stderr.write("\n".join((log, *(said for _, said in gpus))))
    if binary is None or not all(ok for ok, _ in gpus):
        return 1
    Path(product).write_bytes(binary)
    return 0


run = alone(__name__, compile_file.__name__)
