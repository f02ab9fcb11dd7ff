"""The compile phase: one kernel source to one library, behind the same walls as a candidate.

A source is hostile even before it runs: `#include` and `.incbin` read files, templates eat memory.
So the compiler runs without network and sees the toolchain only; what it makes is kept by content,
in a folder that no candidate can write to.
"""

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from data.codec import dumps, loads
from data.errors import MachineError
from data.records import digest
from targets import TARGETS
from targets.base import Target
from targets.remote.kforge_launch import compile_command, source_hash
from targets.remote.sandbox import Limits
from targets.remote.walled import walled

DEADLINE_S = 60.0
MEMORY_BYTES = 4 << 30
TEMPORARY_BYTES = 256 << 20
NAME, LIBRARY = "kernel.cpp", "kernel.so"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A target's compiler on this machine."""

    target: str
    compiler: str
    version: str
    machine: str
    """Libraries are made for the very processor: it belongs to the key."""

    @property
    def key(self) -> str:
        command = compile_command(Path("s"), Path("l"), compiler=self.compiler)
        return digest(self.target, self.version, self.machine, *command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What the compiler did with one source."""

    ok: bool
    command: str
    output: str
    seconds: float


def toolchain(target: Target) -> Toolchain:
    """The first of the target's compilers that is here. Raises MachineError without one."""
    found = next((path for tool in target.tools if (path := shutil.which(tool))), None)
    if found is None:
        tools = " or ".join(target.tools)
        raise MachineError(
            f"no C++ compiler on this machine: install {tools} (apt-get install g++)"
        )
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    version = done.stdout.partition("\n")[0]
    cpu = Path("/proc/cpuinfo")
    flags = cpu.read_text().partition("\n\n")[0] if cpu.exists() else os.uname().machine
    stable = "\n".join(line for line in flags.splitlines() if "MHz" not in line)
    return Toolchain(target=target.name, compiler=found, version=version, machine=digest(stable))


def library_folder(cache: Path, target: str = "cpu") -> Path:
    """Where the run phase finds the libraries, named `source_hash` + `.so`."""
    return cache / "kernels" / toolchain(TARGETS[target]).key


def compiled(cache: Path, target: Target, language: str, source: str) -> Compiled:
    """The library of `source` is in the cache afterwards if ok; a second time costs nothing."""
    tools = toolchain(target)
    folder = cache / "kernels" / tools.key
    folder.mkdir(parents=True, exist_ok=True)
    name = source_hash(language, source)
    kept = folder / f"{name}.json"
    if kept.exists() and (folder / f"{name}.so").exists():
        return loads(Compiled, kept.read_text())
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as work:
        place = Path(work)
        (place / NAME).write_text(source)
        command = target.compile_command(
            Path(NAME), Path(LIBRARY), language=language, compiler=tools.compiler
        )
        done = _run(command, place)
        if done.ok:
            (place / "report.json").write_text(dumps(done))
            (place / LIBRARY).replace(folder / f"{name}.so")
            (place / "report.json").replace(kept)
    return done


def _run(command: tuple[str, ...], folder: Path) -> Compiled:
    """Runs the compiler in `folder`, walled in; ours is the deadline."""
    started = time.monotonic()
    limits = Limits(memory_bytes=MEMORY_BYTES, seconds=DEADLINE_S, tmpfs_bytes=TEMPORARY_BYTES)
    ended = walled(lambda _: os.execv(command[0], command), folder, limits)  # noqa: S606 (a list)
    text = ended.log
    if ended.out_of_memory:
        text += f"\ncompiling took more than {MEMORY_BYTES >> 30} GiB of memory"
    if not ended.in_time:
        text += f"\ncompiling took longer than {DEADLINE_S:.0f} s"
    ok = ended.in_time and ended.code == 0 and (folder / LIBRARY).is_file()
    seconds = round(time.monotonic() - started, 3)
    return Compiled(ok=ok, command=" ".join(command), output=text, seconds=seconds)
