"""The launcher's half for devices that are not there."""

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from targets.remote import metal
from targets.remote.emulation import build
from targets.remote.kforge_launch import signatures

CHECKED_CALLS = 3
"""Launches of a kernel that are checked access by access, each in another order of threads; later
ones are compared by their results alone, some twenty times faster."""
ORDERS = 3
REPORT = 1000


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_ulong),
        ("order", ctypes.c_int),
        ("warp", ctypes.c_int),
        ("count", ctypes.c_int),
        ("base", ctypes.POINTER(ctypes.c_void_p)),
        ("size", ctypes.POINTER(ctypes.c_ulong)),
        ("grain", ctypes.POINTER(ctypes.c_ulong)),
        ("offsets", ctypes.POINTER(ctypes.c_uint)),
        ("lines", ctypes.POINTER(ctypes.c_uint)),
        ("rows", ctypes.c_int),
        ("report", ctypes.c_char_p),
        ("limit", ctypes.c_ulong),
    )


@dataclass(frozen=True, slots=True)
class Emulated:
    """A loaded library with its line table."""

    library: ctypes.CDLL
    offsets: Any
    lines: Any
    calls: dict[str, int] = field(default_factory=dict)


class EmulatedHalf:
    """CUDA C or HIP on tensors of the CPU."""

    place, product, pointers = "cpu", "kernel.so", dict[str, tuple[str, ...]]()

    def __init__(self, languages: tuple[str, ...], *, source: str, words: str, warp: int) -> None:
        self.languages, self.source, self.words, self._warp = languages, source, words, warp

    def as_c(self, source: str) -> str:
        """Without the words that only a device compiler knows; device functions are private."""
        text = re.sub(r"\b__launch_bounds__\s*\([^()]*\)", " ", source)
        text = re.sub(r"\b__device__\b", " static ", text)
        return re.sub(r"\b(?:__global__|__host__|__grid_constant__|__restrict__)\b", " ", text)

    def hollow(self, language: str, kernels: Mapping[str, Sequence[str]]) -> str:  # noqa: ARG002
        return ""  # what is emulated is not run twice

    def tag(self) -> str:
        return f"-emulated{self._warp}"

    def compile(self, language: str, source: Path, product: Path) -> None:  # noqa: ARG002 (one)
        """RuntimeError with the compiler's text."""
        kernels = tuple(signatures(self.as_c(source.read_text())))
        complaint = build.build(source, product, self.words, kernels)
        if complaint is not None:
            raise RuntimeError(complaint)

    def load(self, product: Path) -> Emulated:
        rows = build.lines(product)
        array = ctypes.c_uint * max(len(rows), 1)
        return Emulated(
            library=ctypes.CDLL(str(product)),
            offsets=array(*[at for at, _ in rows]),
            lines=array(*[line for _, line in rows]),
        )

    def bind(self, loaded: Emulated, name: str, kinds: Sequence[Any]) -> Callable[..., None]:
        """RuntimeError with the fault and its line when a launch goes wrong."""

        def launch(
            values: Sequence[Any], grid: Any, block: Any, shared: int, args: Sequence[Any]
        ) -> None:
            number = loaded.calls.get(name, 0)
            loaded.calls[name] = number + 1
            held = [kind(value) for kind, value in zip(kinds, values, strict=True)]
            report = ctypes.create_string_buffer(REPORT)
            job = self._job(loaded, (grid, block, shared), number, args)
            job.report, job.limit = ctypes.cast(report, ctypes.c_char_p), REPORT
            pointers = (ctypes.c_void_p * max(len(held), 1))(*[ctypes.addressof(h) for h in held])
            build_ = "checked" if number < CHECKED_CALLS else "plain"
            if loaded.library[f"kf_{build_}_{name}"](ctypes.byref(job), pointers):
                raise RuntimeError(f"{name}: {report.value.decode(errors='replace')}")

        return launch

    def _job(
        self, loaded: Emulated, size: tuple[Any, Any, int], number: int, args: Sequence[Any]
    ) -> _Launch:
        grid, block, shared = size
        regions = [_region(a) for a in args]
        count = len(regions)
        many = max(count, 1)
        return _Launch(
            grid=(ctypes.c_uint * 3)(*_three(grid)),
            block=(ctypes.c_uint * 3)(*_three(block)),
            shared=shared,
            order=number % ORDERS,
            warp=self._warp,
            count=count,
            base=(ctypes.c_void_p * many)(*[b for b, _, _ in regions]),
            size=(ctypes.c_ulong * many)(*[s for _, s, _ in regions]),
            grain=(ctypes.c_ulong * many)(*[g for _, _, g in regions]),
            offsets=loaded.offsets,
            lines=loaded.lines,
            rows=len(loaded.lines),
        )


def _region(value: Any) -> tuple[int, int, int]:
    """Address, bytes and bytes of an element of a tensor; zeros for a number."""
    if not hasattr(value, "data_ptr"):
        return 0, 0, 1
    storage = value.untyped_storage()
    item = value.element_size()
    return storage.data_ptr(), storage.nbytes(), min(4, item)


def _three(size: Any) -> tuple[int, int, int]:
    given = (size,) if isinstance(size, int) else tuple(size or (1,))
    x, y, z = (*map(int, given), 1, 1)[:3]
    return x, y, z


class MetalHalf(EmulatedHalf):
    """As CUDA's, with Metal's way to declare a kernel."""

    pointers = metal.POINTERS

    def as_c(self, source: str) -> str:
        """A prototype for each kernel, with what Python passes."""
        return metal.prototypes(source)


def emulated(lanes: int) -> dict[str, EmulatedHalf]:
    """By language, for a device whose sub-groups have so many threads."""
    sources = {"cuda": "kernel.cu", "hip": "kernel.hip"}
    halves = {
        word: EmulatedHalf((word,), source=source, words="cuda.hpp", warp=lanes)
        for word, source in sources.items()
    }
    return {**halves, METAL.languages[0]: METAL}


METAL = MetalHalf(("metal",), source="kernel.metal", words="metal.hpp", warp=32)
CUDA, HIP = emulated(32)["cuda"], emulated(64)["hip"]
