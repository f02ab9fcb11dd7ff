"""The root folder of a child: empty, filled with binds of what it needs, read-only."""

import os
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from targets.remote import syscalls
from targets.remote.syscalls import (
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    mount,
    set_read_only,
)

FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store")
ETC = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "nsswitch.conf"),
    "OpenCL",
)
PROCESSOR = "/sys/devices/system"
"""Cores, caches and memory nodes: thread pools and libraries ask for them."""
ENUMERATED = ("/sys/bus/pci", "/sys/class", "/sys/dev", "/sys/devices", "/sys/module/amdgpu")
"""Where AMD's and Intel's run times look for their devices."""
DEVICES = ("null", "zero", "full", "random", "urandom")
ACCELERATORS = ("nvidia*", "dri", "kfd", "dxg", "accel*")
PROC_ROOT = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver")
"""What root may write in procfs. libcuda names its threads there and fails with 304 if it cannot,
so that the rest stays writable in a child with device nodes; without capabilities it is its own."""
PLACE = "/tmp"  # noqa: S108 (any folder serves as the mount point)


@dataclass(frozen=True, slots=True)
class Source:
    """A path and a copy of its mount, taken while its parents could still be passed."""

    fd: int
    path: str


def accelerators() -> tuple[str, ...]:
    """Device nodes of accelerators, and folders of them."""
    return tuple(str(p) for pattern in ACCELERATORS for p in sorted(Path("/dev").glob(pattern)))


def packages() -> tuple[str, ...]:
    """The folder in which torch lies, and where a link there leads, without importing it."""
    torch = find_spec("torch")
    if torch is None or torch.origin is None:
        return ()
    origin = Path(torch.origin)
    return tuple({str(path.parents[1]): None for path in (origin, origin.resolve())})


@cache
def system_folders() -> tuple[str, ...]:
    """Interpreter, packages and toolchain: all that is bound into the new root, read-only."""
    found = [p for p in FOLDERS if Path(p).exists()]
    found += [f"/etc/{p}" for p in ETC if Path("/etc", p).exists()]
    found += [p for p in (ENUMERATED if accelerators() else ()) if Path(p).exists()]
    found += [PROCESSOR, sys.prefix, sys.base_prefix]
    found += [str(Path(sys.executable).resolve().parents[1]), *packages()]
    for tool in ("g++", "clang++", "cc"):
        where = shutil.which(tool)
        found += [str(Path(where).resolve().parent)] if where else []
    kept: list[str] = []
    for path in found:
        if path != "/" and not any(path == k or path.startswith(f"{k}/") for k in kept):
            kept.append(path)
    return tuple(kept)


def taken(paths: Sequence[str]) -> list[Source]:
    """Those of the paths that exist. Raises OSError for who may not mount."""
    return [Source(syscalls.detached(p), p) for p in paths if Path(p).exists()]


def build(
    sources: Sequence[Source], writable: Sequence[str], nodes: Sequence[str], tmpfs_bytes: int
) -> None:
    """Makes the new root of this mount and process namespace and enters it."""
    devices = taken([*(f"/dev/{name}" for name in DEVICES), *nodes])
    _fill([*devices, *sources], {"tmp": 0, "dev/shm": MS_NOEXEC}, tmpfs_bytes)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1")):
        Path(PLACE, "dev", name).symlink_to(target)
    Path(PLACE, "proc").mkdir()
    mount("proc", f"{PLACE}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for covered in taken([f"{PLACE}/proc/{name}" for name in PROC_ROOT if nodes]):
        syscalls.attach(covered.fd, covered.path)
    set_read_only(PLACE, on=True)
    for path in ("/tmp", "/dev/shm", *(("/proc",) if nodes else ()), *writable):  # noqa: S108
        set_read_only(PLACE + path, on=False)
    syscalls.pivot_root(PLACE)
    os.chdir("/tmp")  # noqa: S108


def stage(sources: Sequence[Source], tmpfs_bytes: int) -> None:
    """The same for a process that will make its own namespaces: /proc and /dev are the host's."""
    _fill([*sources, *taken(("/proc", "/dev"))], {"tmp": 0}, tmpfs_bytes)
    syscalls.pivot_root(PLACE)
    os.chdir("/tmp")  # noqa: S108


def _fill(sources: Sequence[Source], scratch: Mapping[str, int], tmpfs_bytes: int) -> None:
    """An empty root with sized scratch folders, by their mount flags, and the sources."""
    os.umask(0o022)
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,mode=755")
    for folder, flags in scratch.items():
        Path(PLACE, folder).mkdir(parents=True)
        size = f"size={tmpfs_bytes},mode=1777"
        mount("tmpfs", f"{PLACE}/{folder}", "tmpfs", MS_NOSUID | MS_NODEV | flags, size)
    for source in sources:
        _bind(source)


def _bind(source: Source) -> None:
    target = Path(PLACE + source.path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.path in FOLDERS and Path(source.path).is_symlink():
        target.symlink_to(Path(source.path).readlink())
        return
    if stat.S_ISDIR(os.fstat(source.fd).st_mode):
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.touch()
    syscalls.attach(source.fd, str(target))
