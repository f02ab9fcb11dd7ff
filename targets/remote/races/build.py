"""A C or C++ kernel source to a library whose threads take turns and whose accesses are seen.

The kernel is compiled as for the compiler's own thread sanitizer, and linked with `team.cpp` in
place of the sanitizer and of libgomp: neither can be loaded into a Python process that runs.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from data.errors import MachineError
from data.records import digest
from targets.base import Program
from targets.remote.kforge_launch import CPP, CPP_FLAGS, STANDARDS, Half

NAME = "races"
LACKING = "LACKING: "
"""Before what the look at threads does not know, in the builder's output."""
SOURCES = {
    name: (files("targets.remote.races") / name).read_text(encoding="utf-8")
    for name in ("shadow.hpp", "team.cpp")
}
"""Read before there are walls."""
TEAM_FLAGS = ("-O2", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-std=c++17")
SEEN = (
    "-O1",
    "-g",
    "-fsanitize=thread",
    "--param=tsan-distinguish-volatile=1",
    # A read or write that the source does not make would be taken for the kernel's own.
    "-fno-tree-loop-im",
    "-fno-tree-cselim",
    "-fno-tree-sink",
    "-fno-if-conversion",
    # Expanded in place they would not be seen.
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-builtin-memset",
    "-w",
)
OURS = (
    "malloc",
    "calloc",
    "realloc",
    "aligned_alloc",
    "posix_memalign",
    "free",
    "mmap",
    "munmap",
    "memcpy",
    "memmove",
    "memset",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_mutex_trylock",
    "__cxa_guard_acquire",
    "__cxa_guard_release",
    "__cxa_guard_abort",
    "sched_yield",
    "_Znwm",
    "_Znam",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
)
"""What the kernel calls of libc under these names is `kf_` + the name in `team.cpp`."""
UNKNOWN = re.compile(
    r"(?P<name>pthread_(?!mutex_(?:lock|trylock|unlock|init|destroy)|self|getspecific"
    r"|setspecific|key_)\w+|sem_\w+|syscall|mtx_\w+|cnd_\w+|thrd_\w+|call_once|v?fork|clone"
    r"|_ZN?K?St(?:6thread|18condition_variable|22condition_variable_any|13__future_base)\w*"
    r"|_ZSt\d+__once\w+|GOMP_\w+|omp_\w+)"
)
"""Functions by which threads are started or wait for each other, beyond OpenMP."""
_MISSING = re.compile(r"undefined (?:reference to|symbol:?) [`']?(?P<name>[\w:~ ]+)")


@dataclass(frozen=True, slots=True)
class Races:
    """What makes such libraries; a compiler like that of a target."""

    team: bytes
    """`team.cpp`, compiled."""
    name: str = NAME
    halves: tuple[Half, ...] = (CPP,)
    tools: tuple[str, ...] = (NAME,)

    @property
    def programs(self) -> dict[str, Program]:
        return {NAME: Program(where=found, version=version, run=self.run)}

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]:
        """`arch` is the processor's own."""
        del arch
        return (compiler, language, "-o", str(output), str(source))

    def run(self, words: Sequence[str]) -> int:
        """Takes what `compile_command` gave; 1 and a text on stderr where there is no library."""
        _, language, _, product, source = words
        complaint = build(self.team, language, Path(source), Path(product))
        if complaint is not None:
            sys.stderr = open(2, "w", errors="replace", closefd=False)  # noqa: SIM115 (it ends)
            sys.stderr.write(complaint)
            sys.stderr.flush()
        return int(complaint is not None)


def found() -> Path | None:
    """The compiler that it rests on: another has another run time for OpenMP."""
    path = shutil.which("g++") if sys.platform == "linux" else None
    return Path(path) if path else None


def version() -> str:
    """Of the compiler and of our own sources."""
    done = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=False)
    return f"{done.stdout.partition(chr(10))[0]}, races {digest(*SOURCES.values(), *SEEN)}"


def maker(cache: Path) -> Races:
    """The builder, with what all libraries share compiled once. MachineError where it cannot be."""
    kept = cache / NAME / f"{digest(version(), *TEAM_FLAGS)}.o"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".build-") as folder:
            _compile_team(Path(folder)).replace(kept)
    return Races(kept.read_bytes())


def _compile_team(folder: Path) -> Path:
    for name, text in SOURCES.items():
        (folder / name).write_text(text, encoding="utf-8")
    made = folder / "team.o"
    done = _said("g++", *TEAM_FLAGS, "-c", str(folder / "team.cpp"), "-o", str(made))
    if done.returncode:
        raise MachineError(f"g++ does not compile what looks at threads: {done.stderr[:300]}")
    return made


def build(team: bytes, language: str, source: Path, product: Path) -> str | None:
    """Compiles and links; None when the product is there, else what was in the way."""
    kernel, shared = Path("kernel.o"), Path("team.o")
    flags = [f for f in CPP_FLAGS if f not in ("-O3", "-shared")]
    done = _said("g++", *SEEN, *flags, *STANDARDS[language], "-c", str(source), "-o", str(kernel))
    if done.returncode:
        return done.stderr
    if (unknown := _unknown(_said("nm", "-u", str(kernel)).stdout)) is not None:
        return f"{LACKING}{unknown}"
    names = Path("names.txt")
    names.write_text("".join(f"{name} kf_{name}\n" for name in OURS))
    renamed = _said("objcopy", f"--redefine-syms={names}", str(kernel))
    if renamed.returncode:
        return renamed.stderr
    shared.write_bytes(team)
    objects = ("-o", str(product), str(kernel), str(shared))
    linked = _said("g++", "-shared", "-Wl,-z,defs", *objects, "-lm", "-lpthread")
    missing = _MISSING.search(linked.stderr)
    if linked.returncode and missing:
        return f"{LACKING}{missing['name']}"
    return linked.stderr if linked.returncode else None


def _unknown(symbols: str) -> str | None:
    """The first function among undefined symbols whose waiting is not understood."""
    for line in symbols.splitlines():
        name = line.split()[-1] if line.split() else ""
        if UNKNOWN.fullmatch(name) and not name.startswith(("GOMP_", "omp_")):
            return name
    return None


def _said(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
