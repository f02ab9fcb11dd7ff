"""OpenCL C in the launcher: kernels run on the processor, on tensors of the CPU where they lie."""

import contextlib
import ctypes
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from targets.opencl import Opencl, library, release

INVALID_ARG_VALUE = -50


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    """Compiled kernels, loaded when one of them is first launched."""

    images: tuple[bytes, ...]

    @functools.lru_cache(maxsize=None)  # noqa: B019, UP033 (as long as its module)
    def programs(self) -> tuple[ctypes.c_void_p, ...]:
        return tuple(_opencl().load(image) for image in self.images)

    def kernel(self, name: str) -> ctypes.c_void_p:
        """Of the first program that has it. RuntimeError when none does."""
        *others, last = self.programs()
        for program in others:
            with contextlib.suppress(RuntimeError):
                return _opencl().kernel(program, name)
        return _opencl().kernel(last, name)


@functools.cache
def _opencl() -> Opencl:
    return Opencl()


class OpenclHalf:
    """OpenCL C: binaries by the run time's compiler; a launch returns when its kernel has ended.

    A pointer to `__local` memory takes its number of bytes.
    """

    languages, place = ("opencl",), "cpu"
    source, product = "kernel.cl", "kernel.clbin"
    prefix = ""
    """Before a kernel's name in the binary."""
    space, empty = "__global", "__kernel void"
    local = "OpenCL takes local memory as an argument"
    pointers = {  # noqa: RUF012 (a constant)
        "half": ("float16",),
        **{f"float{n}": ("float32",) for n in (2, 3, 4, 8, 16)},
        **{f"double{n}": ("float64",) for n in (2, 4, 8)},
        **{f"int{n}": ("int32",) for n in (2, 4, 8, 16)},
        **{f"uint{n}": ("uint32", "int32") for n in (2, 4, 8, 16)},
        **{f"half{n}": ("float16",) for n in (2, 4, 8, 16)},
        **{f"char{n}": ("int8", "uint8", "bool") for n in (2, 4, 8, 16)},
        **{f"uchar{n}": ("int8", "uint8", "bool") for n in (2, 4, 8, 16)},
    }

    def as_c(self, source: str) -> str:
        """Kernels as functions of C; a pointer to local memory becomes the size that it takes."""
        local = (
            r"(?:__local|\blocal)\s+(?:(?:const|volatile|unsigned|signed)\s+)*\w+\s*\*"
            r"\s*(?:(?:const|restrict|__restrict)\s+)*(\w+)"
        )
        text = re.sub(local, r"size_t \1", source)
        text = re.sub(r"\b(?:__kernel|kernel)\b", ' extern "C" ', text)
        text = re.sub(r"\bu(char|short|int|long)\b", r"unsigned \1", text)
        return re.sub(r"\b(?:__)?(?:global|constant|restrict|private)\b", " ", text)

    def hollow(self, language: str, kernels: Mapping[str, Sequence[str]]) -> str:  # noqa: ARG002
        """The parameters stay: the run time counts them."""
        return "\n".join(
            f"{self.empty} {name}({', '.join(map(self._hollow, parameters))}) {{}}"
            for name, parameters in kernels.items()
        )

    def _hollow(self, parameter: str) -> str:
        """A parameter that takes the same argument: of a pointer only its address space matters."""
        name = parameter.rsplit(maxsplit=1)[-1].lstrip("*")
        if "*" in parameter or "[" in parameter:
            return f"{self.space} char* {name.partition('[')[0]}"
        return f"__local char* {name}" if parameter.startswith("size_t ") else parameter

    def tag(self) -> str:
        """The run time's release: its binaries are for it and for this processor."""
        found = library()
        return "-" + re.sub(r"\W+", "-", release(found)) if found is not None else ""

    def compile(self, language: str, source: Path, product: Path) -> None:  # noqa: ARG002 (one)
        """RuntimeError with the compiler's text."""
        binary, log = _opencl().build(source.read_text())
        if binary is None:
            raise RuntimeError(log)
        product.write_bytes(binary)

    def load(self, product: Path) -> Binary:
        return Binary((product.read_bytes(),))

    def bind(self, loaded: Binary, name: str, kinds: Sequence[Any]) -> Callable[..., None]:
        """The launch; the run time is first asked when it is first called."""
        kernels: list[_Kernel] = []

        def launch(
            values: Sequence[Any], grid: Any, block: Any, shared: int, args: Sequence[Any]
        ) -> None:
            if shared:
                raise ValueError(f"{name}: {self.local}, not `shared`")
            if not kernels:
                handle = loaded.kernel(self.prefix + name)
                kernels.append(_Kernel(_opencl(), handle, name, kinds))
            size = (*_three("grid", grid), *_three("block", block))
            kernels[0].launch(values, size, args)

        return launch


class _Kernel:
    """A kernel with what its parameters take."""

    def __init__(
        self, opencl: Opencl, handle: ctypes.c_void_p, name: str, kinds: Sequence[Any]
    ) -> None:
        self._opencl, self._handle, self._name, self._kinds = opencl, handle, name, kinds
        self._set = opencl.library.clSetKernelArg
        self._local = [
            kind is ctypes.c_size_t and self._is_local(k) for k, kind in enumerate(kinds)
        ]

    def launch(self, values: Sequence[Any], size: tuple[int, ...], args: Sequence[Any]) -> None:
        """Runs the kernel to its end. RuntimeError when the run time refuses."""
        buffers: dict[int, tuple[ctypes.c_void_p, int]] = {}
        for k, value in enumerate(values):
            status = self._give(k, value, args[k], buffers)
            self._opencl.check(status, f"{self._name}: argument {k + 1}")
        groups, local = size[:3], (ctypes.c_size_t * 3)(*size[3:])
        whole = (ctypes.c_size_t * 3)(*[g * n for g, n in zip(groups, size[3:], strict=True)])
        run, queue = self._opencl.library, self._opencl.queue
        given = (queue, self._handle, 3, None, whole, local, 0, None, None)
        status = run.clEnqueueNDRangeKernel(*given) or run.clFinish(queue)
        for buffer, length in buffers.values():
            self._opencl.give_back(buffer, length)
        if status:
            what = f"{self._name} grid={groups} block={size[3:]}"
            raise RuntimeError(f"the launch of {what} failed: {self._opencl.message(status)}")

    def _give(
        self, k: int, value: Any, given: Any, buffers: dict[int, tuple[ctypes.c_void_p, int]]
    ) -> int:
        """Sets a parameter; the status. Memory lies where it is, as a buffer if need be."""
        kind = self._kinds[k]
        if kind is not ctypes.c_void_p:
            held = None if self._local[k] else ctypes.byref(kind(value))
            length = value if self._local[k] else ctypes.sizeof(kind)
            return int(self._set(self._handle, k, ctypes.c_size_t(length), held))
        if self._opencl.takes_addresses:
            pointer = ctypes.c_void_p(value)
            return int(self._opencl.library.clSetKernelArgSVMPointer(self._handle, k, pointer))
        size = given.numel() * given.element_size() if value is not None else 0
        if not size:
            return int(self._set(self._handle, k, ctypes.c_size_t(8), None))
        if value not in buffers:
            buffers[value] = (self._opencl.buffer(value, size), size)
        return int(self._set(self._handle, k, ctypes.c_size_t(8), ctypes.byref(buffers[value][0])))

    def _is_local(self, k: int) -> bool:
        """A pointer to local memory takes a size and no value."""
        zero = ctypes.c_size_t()
        status = self._set(self._handle, k, ctypes.c_size_t(8), ctypes.byref(zero))
        return bool(status == INVALID_ARG_VALUE)


def _three(what: str, given: Any) -> tuple[int, int, int]:
    """Grid or block as three numbers; ValueError unless it is one to three positive ints."""
    sizes = (given,) if isinstance(given, int) else tuple(given or ())
    if not 1 <= len(sizes) <= 3 or any(not isinstance(s, int) or s < 1 for s in sizes):
        raise ValueError(f"{what} must be one to three positive ints, got {given!r}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


OPENCL = OpenclHalf()
