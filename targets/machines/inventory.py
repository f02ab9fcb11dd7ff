"""The devices that this installation knows: the plain CPU, those in `devices.toml`, data sheets."""

import glob
import platform
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from data.errors import MisuseError
from data.records import Device
from targets import TARGETS, cards
from targets.base import Capabilities, Program
from targets.machines.ec2_entry import Ec2Entry, Name
from targets.machines.slurm_entry import SlurmEntry
from targets.remote import emulator
from targets.remote.compiler import installed, version

FILE = Path("devices.toml")
MACHINES = ("local",)
"""Transports that exist."""
PROCESSOR = {
    "cpu": ("cpu", ""),
    "xeon-opencl": ("intel", "opencl"),
    "xeon-sycl": ("intel", "sycl"),
}
"""Devices that are the processor of this machine: target and language of their kernels."""
Index = Annotated[int, Field(ge=0)]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One `[[device]]` of the file."""

    name: Name
    target: Name
    arch: str
    machine: Name = "local"
    machines: tuple[Name, ...] = ()
    """Several that have the same hardware, instead of one."""
    index: Index = 0
    indices: tuple[Index, ...] = ()
    """Several of the same kind on each machine, instead of one."""
    language: str = ""
    """Of its kernels, where its target's first one is not meant."""

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """Machine and index of each; the first stands for all."""
        indices = self.indices or (self.index,)
        return tuple((m, i) for m in self.machines or (self.machine,) for i in indices)


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class SshEntry:
    """One `[[machine]]` behind SSH."""

    name: Name
    kind: Literal["ssh"]
    host: Annotated[str, Field(pattern=r"^[^\s-]\S*$")]
    """`[user@]host[:port]`, or an alias of `~/.ssh/config`."""
    python: str = "python3"
    """3.11 or later, with torch."""
    root: str = "~/.kforge"
    """Where code, jobs and caches lie there."""
    config: str | None = None
    """Instead of `~/.ssh/config`."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolEntry:
    """One `[[machine]]` that takes jobs through a folder."""

    name: Name
    kind: Literal["spool"]
    folder: str
    """As the controller sees it; relative to the working folder."""
    wait_minutes: Annotated[float, Field(ge=0)] = 0.0
    """How long a command waits when nobody works there; it always waits half a minute."""

    @property
    def place(self) -> Path:
        return Path(self.folder).expanduser().absolute()


LoginEntry = SshEntry | SlurmEntry
MachineEntry = LoginEntry | SpoolEntry | Ec2Entry


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The whole file."""

    device: tuple[Entry, ...] = ()
    machine: tuple[Annotated[MachineEntry, Field(discriminator="kind")], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    """A device with what can be done with it from here: a line of `kforge devices --json`."""

    name: str
    vendor: str
    target: str
    arch: str
    machine: str
    compile: bool
    execute: bool
    time: bool
    why: str
    """What is missing; empty when all three are there."""
    tool: str = ""
    """The compiler that is used; empty when there is none."""
    version: str = ""


def devices(path: Path | None = None) -> dict[str, Device]:
    """All known devices by name; `path` is `devices.toml` of the working folder by default.

    MisuseError for a file that is not there although named, or that cannot be meant.
    """
    known = {
        name: Device(
            name=name,
            target=target,
            vendor=_vendor(target),
            arch=_host_arch(),
            language=language,
        )
        for name, (target, language) in PROCESSOR.items()
    }
    file = path if path is not None else FILE
    entries = () if path is None and not file.exists() else _document(file).device
    for entry in entries:
        if entry.name in known:
            raise MisuseError(f"{file}: device {entry.name!r} is there twice; names are unique")
        known[entry.name] = Device(
            name=entry.name,
            target=entry.target,
            vendor=_vendor(entry.target),
            arch=entry.arch,
            machine=entry.places[0][0],
            index=entry.places[0][1],
            language=entry.language,
        )
    return known | {n: _by_sheet(s) for n, s in cards.sheets().items() if n not in known}


def _by_sheet(sheet: cards.Sheet) -> Device:
    """A device of which nothing but its data sheet is known: unless it is here, it is emulated."""
    return Device(
        name=sheet.name,
        target=sheet.target,
        vendor=_vendor(sheet.target),
        arch=sheet.arch,
        execution=_execution(sheet),
    )


def _execution(sheet: cards.Sheet) -> str:
    if _is_here(sheet):
        return "hardware"
    target = TARGETS.get(sheet.target)
    return "emulated" if target is not None and emulator.emulates(target) else "none"


def _is_here(sheet: cards.Sheet) -> bool:
    """Whether the system names such a device."""
    target = TARGETS.get(sheet.target)
    texts = [Path(p).read_text() for p in glob.glob(target.models)] if target is not None else []  # noqa: PTH207 (absolute)
    return any(sheet.model in text for text in texts)


def places(of: Device, path: Path | None = None) -> tuple[Device, ...]:
    """The device on each machine that has it, and at each index there."""
    file = path if path is not None else FILE
    entries = _document(file).device if path is not None or file.exists() else ()
    listed = next((e.places for e in entries if e.name == of.name), ())
    return tuple(replace(of, machine=m, index=i) for m, i in listed) or (of,)


def every_place(path: Path | None = None) -> tuple[Device, ...]:
    """All devices on all their machines."""
    return tuple(place for d in devices(path).values() for place in places(d, path))


def device(name: str, path: Path | None = None) -> Device:
    """The device of that name; MisuseError says which there are."""
    known = devices(path)
    if name not in known:
        listed = ", ".join(sorted(known))
        raise MisuseError(f"unknown device {name!r}; known: {listed} ({path or FILE})")
    return known[name]


def spools(path: Path | None = None) -> dict[str, SpoolEntry]:
    """The spools in `devices.toml` by name of their machine. MisuseError as `devices`."""
    return {e.name: e for e in _machines(path) if isinstance(e, SpoolEntry)}


def destinations(path: Path | None = None) -> dict[str, LoginEntry]:
    """The machines behind SSH in `devices.toml` by name. MisuseError as `devices`."""
    return {e.name: e for e in _machines(path) if isinstance(e, LoginEntry)}


def clouds(path: Path | None = None) -> dict[str, Ec2Entry]:
    """The instances of EC2 in `devices.toml` by name. MisuseError as `devices`."""
    return {e.name: e for e in _machines(path) if isinstance(e, Ec2Entry)}


def _machines(path: Path | None) -> tuple[MachineEntry, ...]:
    """All of the file, none without one; MisuseError when a name is there twice."""
    file = path if path is not None else FILE
    if path is None and not file.exists():
        return ()
    names = list(MACHINES)
    for entry in (entries := _document(file).machine):
        if entry.name in names:
            raise MisuseError(f"{file}: machine {entry.name!r} is there twice; names are unique")
        names.append(entry.name)
    return entries


def capabilities(of: Device) -> DeviceReport:
    """What can be done with the device from here, looked up now."""
    can, tool = _looked_up(of)
    target = TARGETS.get(of.target)
    return DeviceReport(
        name=of.name,
        vendor=of.vendor,
        target=of.target,
        arch=of.arch,
        machine=of.machine if of.execution != "none" else "none",
        compile=can.compile,
        execute=can.execute,
        time=can.time,
        why=can.why,
        tool=tool,
        version=version(target, tool) if target is not None and tool else "",
    )


def _looked_up(of: Device) -> tuple[Capabilities, str]:
    """Capabilities and the compiler."""
    target = TARGETS.get(of.target)
    if target is None:
        return _nothing(f"no target {of.target!r}; known: {', '.join(TARGETS)}"), ""
    if of.machine in {e.name for e in _machines(None)}:
        said = "kforge doctor, or the worker of its spool, says what is missing there"
        return Capabilities(compile=True, execute=True, time=True, why=said), ""
    if of.machine not in MACHINES:
        known = ", ".join((*MACHINES, *(entry.name for entry in _machines(None))))
        return _nothing(f"no machine {of.machine!r}; known: {known}"), ""
    tools = installed(target, of.language or target.languages[0])
    here = of.execution == "hardware"
    nodes = [node for node in target.nodes if here and Path(node).exists()]
    can = target.capabilities(frozenset((*tools, *nodes)), of.language)
    if of.execution == "emulated":
        said = "; ".join(filter(None, (can.why, *_instead(of, target.programs, tools))))
        can = replace(can, execute=True, time=False, why=said)
    if of.execution == "none":
        why = "; ".join(filter(None, (can.why, emulator.lacking(target))))
        can = replace(can, execute=False, time=False, why=why)  # the judge takes it nowhere else
    return can, next(iter(tools), "")


def _instead(of: Device, programs: Mapping[str, Program], tools: Iterable[str]) -> Iterator[str]:
    """What stands in for a device that is not here."""
    language = of.language or TARGETS[of.target].languages[0]
    yield f"executed on this processor by {emulator.version(language)}"
    yield from (programs[tool].figures(of.arch) for tool in islice(tools, 1) if tool in programs)


def _nothing(why: str) -> Capabilities:
    return Capabilities(compile=False, execute=False, time=False, why=why)


@cache
def _adapter() -> TypeAdapter["Document"]:
    """Made once: it takes 30 ms, and each pair looks into the file."""
    return TypeAdapter(Document)


def _document(file: Path) -> Document:
    try:
        text = file.read_text()
        return _adapter().validate_python(tomllib.loads(text))
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"{file} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise MisuseError(f"{file} is not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise MisuseError(f"{file}: {where}: {first['msg']}, got {first['input']!r}") from None


def _vendor(target: str) -> str:
    known = TARGETS.get(target)
    return known.vendor if known is not None else target


def _host_arch() -> str:
    """The processor's instruction set with its widest vectors, such as `x86_64-avx512f`."""
    info = Path("/proc/cpuinfo")
    words = set(info.read_text().split()) if info.exists() else set()
    widest = next((w for w in ("avx512f", "avx2", "sve", "asimd") if w in words), None)
    return f"{platform.machine()}-{widest}" if widest else platform.machine()
