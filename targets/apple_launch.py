"""The launcher's half for Metal on a Mac: torch compiles and launches.

Written after torch's interface (`torch.mps.compile_shader`, TOOLCHAINS.md, section 3); it has not
run on a Mac here. Without one the emulator runs the same sources (`remote/emulation`).
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from targets.remote.metal import POINTERS, prototypes

CASTS = {
    ctypes.c_int: "int32",
    ctypes.c_uint: "int32",
    ctypes.c_short: "int16",
    ctypes.c_ushort: "int16",
    ctypes.c_byte: "int8",
    ctypes.c_ubyte: "uint8",
}
"""How a Python int becomes what the kernel declares; without a word it is 64 bits wide."""


class AppleHalf:
    """Metal: the product is the source itself, which the driver compiles when it is loaded."""

    languages, place = ("metal",), "mps"
    source, product, pointers = "kernel.metal", "kernel.checked.metal", POINTERS

    def as_c(self, source: str) -> str:
        """A prototype for each kernel, with what Python passes."""
        return prototypes(source)

    def hollow(self, language: str, kernels: Mapping[str, Sequence[str]]) -> str:  # noqa: ARG002
        return ""  # what is emulated is not run twice

    def tag(self) -> str:
        return "-metal"

    def compile(self, language: str, source: Path, product: Path) -> None:  # noqa: ARG002 (one)
        """RuntimeError with the compiler's text."""
        text = source.read_text()
        _library(text)
        product.write_text(text)

    def load(self, product: Path) -> str:
        return product.read_text()

    def bind(self, loaded: str, name: str, kinds: Sequence[Any]) -> Callable[..., None]:
        """The launch; the source is compiled when a kernel of it is first called."""
        functions: list[Any] = []
        casts = {k: CASTS[kind] for k, kind in enumerate(kinds) if kind in CASTS}

        def launch(
            _values: Sequence[Any], grid: Any, block: Any, shared: int, args: Sequence[Any]
        ) -> None:
            if shared:
                raise RuntimeError(f"{name}: shared={shared}: torch gives no dynamic memory: "
                                   "declare a threadgroup array in the kernel")  # fmt: skip
            if any(a is None for a in args):
                raise RuntimeError(f"{name}: torch passes no null pointer")
            if not functions:
                functions.append(getattr(_library(loaded), name))
            groups, threads = _three(grid), _three(block)
            total = [g * t for g, t in zip(groups, threads, strict=True)]
            functions[0](*args, threads=total, group_size=threads, arg_casts=casts or None)

        return launch


def _library(source: str) -> Any:
    import torch  # noqa: PLC0415 (only where something is launched)

    try:
        return torch.mps.compile_shader(source)
    except SyntaxError as error:
        raise RuntimeError(str(error)) from None


def _three(given: Any) -> list[int]:
    sizes = (given,) if isinstance(given, int) else tuple(given or (1,))
    return [int(s) for s in (*sizes, 1, 1)[:3]]


METAL = AppleHalf()
