"""The compile phase: one kernel source to one product, behind the same walls as a candidate.

A source is hostile even before it runs: `#include` and `.incbin` read files, templates eat memory.
So the compiler runs without network and sees the toolchain only; what it makes is kept by content,
in a folder that no candidate can write to.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from data.codec import dumps, loads
from data.errors import MachineError
from data.records import Device, digest
from targets import TARGETS
from targets.base import Program
from targets.remote.emulator import EMULATOR
from targets.remote.kforge_launch import Half, source_hash
from targets.remote.races.build import found as builder
from targets.remote.races.build import maker
from targets.remote.sandbox import Limits
from targets.remote.walled import walled

DEADLINE_S = 60.0
MEMORY_BYTES = 4 << 30
TEMPORARY_BYTES = 256 << 20


class Maker(Protocol):
    """The part of a target that compiles; the emulator has no other."""

    @property
    def name(self) -> str: ...

    @property
    def halves(self) -> tuple[Half, ...]: ...

    @property
    def tools(self) -> tuple[str, ...]: ...

    @property
    def programs(self) -> dict[str, Program]: ...

    def compile_command(
        self, source: Path, output: Path, *, language: str, compiler: str, arch: str
    ) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The compiler of a device on this machine."""

    target: Maker
    arch: str
    compiler: str
    """Path of an executable, or the name of one of the target's programs."""
    version: str
    machine: str
    """Libraries are made for the very processor: it belongs to the key."""

    @property
    def key(self) -> str:
        """Names the folder of what this compiler makes."""
        commands = [
            word
            for half in self.target.halves
            if compiles(self.target, Path(self.compiler).name, half.languages[0])
            for word in self.command(half.languages[0], Path("s"), Path("p"))
        ]
        return digest(self.target.name, self.arch, self.version, self.machine, *commands)

    def command(self, language: str, source: Path, product: Path) -> tuple[str, ...]:
        return self.target.compile_command(
            source, product, language=language, compiler=self.compiler, arch=self.arch
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What the compiler did with one source."""

    ok: bool
    command: str
    output: str
    seconds: float


def installed(target: Maker, language: str = "") -> dict[str, str]:
    """The compilers of the language on this machine: where each is, the preferred one first.

    Without a language, all of the target's.
    """
    places = {
        tool: target.programs[tool].where() if tool in target.programs else shutil.which(tool)
        for tool in target.tools
        if not language or compiles(target, tool, language)
    }
    return {tool: str(place) for tool, place in places.items() if place is not None}


def compiles(target: Maker, tool: str, language: str) -> bool:
    """Whether that compiler of the target takes the language."""
    program = target.programs.get(tool)
    return program is None or not program.languages or language in program.languages


def version(target: Maker, tool: str) -> str:
    """The line in which the tool names its version."""
    if tool in target.programs:
        return target.programs[tool].version()
    done = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines() or [""]
    return next((line for line in lines if re.search(r"\d+\.\d+", line)), lines[0])


def toolchain(device: Device) -> Toolchain:
    """The first compiler here of the language of its kernels. Raises MachineError without one."""
    target = TARGETS[device.target]
    found = _toolchain(target, device.arch, device.language or target.languages[0])
    if found is None:
        raise MachineError(target.capabilities(frozenset(), device.language).why)
    return found


def written_in(device: Device, language: str) -> Device:
    """The device with kernels in this language: some languages have a compiler of their own."""
    return replace(device, language=language)


def emulating() -> Toolchain:
    """What makes libraries for devices that are not here. Raises MachineError without g++."""
    found = _toolchain(EMULATOR, "any", "")
    if found is None:
        raise MachineError("no C++ compiler on this machine, which emulation needs: install g++")
    return found


def racing(cache: Path) -> Toolchain:
    """What makes libraries whose threads are looked at. Raises MachineError without g++."""
    found = _toolchain(maker(cache), "any", "") if builder() else None
    if found is None:
        raise MachineError("that needs g++ on Linux, which is not here")
    return found


def making(device: Device) -> Toolchain:
    """What makes the libraries that are run. Raises MachineError where it is not here."""
    return emulating() if device.execution == "emulated" else toolchain(device)


def _toolchain(target: Maker, arch: str, language: str) -> Toolchain | None:
    found = next(iter(installed(target, language).items()), None)
    if found is None:
        return None
    tool, path = found
    cpu = Path("/proc/cpuinfo")
    flags = cpu.read_text().partition("\n\n")[0] if cpu.exists() else os.uname().machine
    stable = "\n".join(line for line in flags.splitlines() if "MHz" not in line)
    return Toolchain(
        target=target,
        arch=arch,
        compiler=tool if tool in target.programs else path,
        version=version(target, tool),
        machine=digest(stable),
    )


def library_folder(cache: Path, device: Device) -> Path:
    """Where the run phase finds what was compiled, named `source_hash` + the half's suffix."""
    return cache / "kernels" / making(device).key


def compiled(cache: Path, tools: Toolchain, language: str, source: str) -> Compiled:
    """The product of `source` is in the cache afterwards if ok; a second time costs nothing."""
    half = next(h for h in tools.target.halves if language in h.languages)
    folder = cache / "kernels" / tools.key
    folder.mkdir(parents=True, exist_ok=True)
    name, suffix = source_hash(language, source), Path(half.product).suffix
    kept, product = folder / f"{name}.json", folder / f"{name}{suffix}"
    if kept.exists() and product.exists():
        return loads(Compiled, kept.read_text())
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as work:
        place = Path(work)
        (place / half.source).write_text(source)
        command = tools.command(language, Path(half.source), Path(half.product))
        done = _run(tools.target, command, place, half.product)
        if done.ok:
            (place / "report.json").write_text(dumps(done))
            _keep(place / half.product, product)
            (place / "report.json").replace(kept)
    return done


def _keep(made: Path, product: Path) -> None:
    """As a file of ours: the compiler ran as a candidate's user, who could change its own later."""
    fresh = product.with_name(f".{product.name}.{os.getpid()}")
    fd = os.open(made, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as source, fresh.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    fresh.chmod(0o755)
    fresh.replace(product)


def _run(target: Maker, command: tuple[str, ...], folder: Path, product: str) -> Compiled:
    """Runs the compiler in `folder`, walled in; ours is the deadline."""
    started = time.monotonic()
    limits = Limits(memory_bytes=MEMORY_BYTES, seconds=DEADLINE_S, tmpfs_bytes=TEMPORARY_BYTES)
    program = target.programs.get(command[0])

    def compile_it(_: int) -> None:
        if program is None:
            os.execv(command[0], command)  # noqa: S606 (a list)
        else:
            os._exit(program.run(command))

    ended = walled(compile_it, folder, limits)
    text = ended.log
    if ended.out_of_memory:
        text += f"\ncompiling took more than {MEMORY_BYTES >> 30} GiB of memory"
    if not ended.in_time:
        text += f"\ncompiling took longer than {DEADLINE_S:.0f} s"
    ok = ended.in_time and ended.code == 0 and (folder / product).is_file()
    seconds = round(time.monotonic() - started, 3)
    return Compiled(ok=ok, command=" ".join(command), output=text, seconds=seconds)
