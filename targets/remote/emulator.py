"""Devices that are not here: what stands for their compiler, card and sub-groups.

A kernel in one of `EMULATOR.languages` runs on the processor, as fibers (`emulation/`) or, in a
language of `NATIVE`, by a run time for processors: what it computes is real, how fast it is nobody
knows.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from data.records import Card, Device, digest
from targets import cards, opencl, sycl
from targets.base import Program, Target
from targets.opencl_launch import OPENCL
from targets.remote.emulation import build
from targets.remote.emulation.half import CUDA, HIP, METAL
from targets.remote.kforge_launch import Half, signatures
from targets.sycl_launch import SYCL

NAME = "emulator"
UNSUPPORTED = "UNSUPPORTED: "
"""Before what the emulator lacks, in its output."""
NATIVE = (*OPENCL.languages, *SYCL.languages)
"""Compiled for the processor by its own run time; the launcher's halves are the usual ones."""
_HALVES = {word: half for half in (CUDA, HIP, METAL) for word in half.languages}


@cache
def _version() -> str:
    """Of the compiler and of the emulator's own files."""
    done = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=False)
    own = f"{done.stdout.partition(chr(10))[0]}, emulator {digest(*build.HEADERS.values())}"
    found, jit = opencl.library(), sycl.sycl_library()
    return ", ".join(
        [
            own,
            *([opencl.release(found)] if found is not None else []),
            *([sycl.sycl_release(jit)] if jit is not None else []),
        ]
    )


def _where() -> Path | None:
    """The C++ compiler that it rests on."""
    found = shutil.which("g++")
    return Path(found) if found else None


def _run(words: Sequence[str]) -> int:
    """Takes what `compile_command` gave; 1 and a text on stderr when the source is refused."""
    _, language, _, product, source = words
    if language in OPENCL.languages:
        return opencl.run(opencl.command(Path(source), Path(product)))
    if language in SYCL.languages:
        return sycl.sycl_run(sycl.sycl_command(Path(source), Path(product)))
    half = _HALVES[language]
    kernels = tuple(signatures(half.as_c(Path(source).read_text())))
    complaint = build.build(Path(source), Path(product), half.words, kernels)
    if complaint is not None:
        sys.stderr = open(2, "w", errors="replace", closefd=False)  # noqa: SIM115 (the process ends)
        sys.stderr.write(complaint)
        sys.stderr.flush()
        return 1
    return 0


@dataclass(frozen=True, slots=True)
class Emulator:
    """The compiler of kernels for devices that are not here."""

    name: str = NAME
    languages: tuple[str, ...] = (*_HALVES, *NATIVE)
    halves: tuple[Half, ...] = (CUDA, HIP, METAL, OPENCL, SYCL)
    tools: tuple[str, ...] = (NAME,)
    programs: dict[str, Program] = field(
        default_factory=lambda: {NAME: Program(where=_where, version=_version, run=_run)}
    )

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """One library for all architectures: lanes are counted when a kernel is launched."""
        del arch
        return (compiler, language, "-o", str(output), str(source))


EMULATOR = Emulator()


def emulates(target: Target) -> bool:
    """Whether devices of this target can be emulated on this machine."""
    native = set(target.languages) & set(NATIVE)
    return not lacking(target) and (not native or opencl.library() is not None)


def lacking(target: Target) -> str:
    """Why the emulator takes no kernel of this target, beside what its capabilities say."""
    if not set(target.languages) & set(EMULATOR.languages):
        return "no emulator knows its language"
    return "" if _where() is not None else "the emulator needs g++: make toolchains PARTS=cpu"


def version(language: str) -> str:
    """What executes kernels of the language in place of a device."""
    found, jit = opencl.library(), sycl.sycl_library()
    if language in OPENCL.languages and found is not None:
        return opencl.release(found)
    if language in SYCL.languages and jit is not None:
        return sycl.sycl_release(jit)
    return f"KForge's emulator {digest(*build.HEADERS.values())[:8]}"


def lanes(device: Device) -> int:
    """Threads of a sub-group of the device.

    >>> lanes(Device(name="any", target="amd", vendor="amd", arch="gfx90a"))
    64
    """
    sheet = cards.for_arch(device.arch)
    if sheet is not None:
        return sheet.sub_groups[0]
    return 64 if device.arch.startswith("gfx9") else 32  # CDNA and GCN; all others are 32 wide


def card(device: Device) -> Card:
    """What the vendor says of the device: nothing of it can be measured here."""
    sheet = cards.sheets().get(device.name) or cards.for_arch(device.arch)
    return sheet.card if sheet is not None else Card(peak_gb_s=0.0)
