"""The walls round a child, built before it reads a line of foreign code.

Two rungs, recorded with every result: `unshare` (own user, mount, process, network and IPC
namespaces; a root of read-only binds from an allow-list; sized tmpfs) and `process` (own session,
limits, deadline). Memory and process limits come from a control group where one can be made.
"""

import ctypes
import os
import platform
import resource
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
CLONE_NEWNET, CLONE_NEWIPC = 0x40000000, 0x08000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER, PR_SET_PTRACER = 38, 36, 0x59616D61
MOUNT_SETATTR = 442
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
AT_RECURSIVE, AT_FDCWD = 0x8000, -100

UNSHARE, PROCESS = "unshare", "process"

ROOT_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store")
ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "nsswitch.conf")
PROC_ROOT = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver")
"""What root may write in procfs. libcuda names its threads there and fails with 304 if it cannot,
so that the rest stays writable in a child with device nodes; without capabilities it is its own."""
DEVICES = ("null", "zero", "full", "random", "urandom")

_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
"""Above the largest tensor: else reuse of a buffer sells page faults as speed (7.7x measured)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a child may take."""

    memory_bytes: int
    seconds: float
    """Processor time is limited to this many seconds on every core."""
    tmpfs_bytes: int = 1 << 30
    processes: int = 64 + 4 * (os.cpu_count() or 1)
    """OpenMP on many cores breaks a fixed 64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The files that a child sees beside the system's and Python's."""

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    """Device nodes, absolute."""


def environment(cache: Path) -> dict[str, str]:
    """The whole environment of the warm process and its children: an allow-list, no secrets.

    Allocator thresholds are read when libc starts, so the warm process is executed with them.
    """
    return {
        "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        "HOME": "/tmp",  # noqa: S108 (a tmpfs of the child's own)
        "TMPDIR": "/tmp",  # noqa: S108
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # else asking whether there is a device spoils forks
        **_ALLOCATOR,
    }


def die_with_parent(parent: int, *, number: int = signal.SIGKILL) -> None:
    """The kernel sends the signal when the parent dies; `parent` is checked for the race."""
    _LIBC.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def adopt_orphans() -> None:
    """Descendants whose parent died become children of this process."""
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def unshare() -> None:
    """New namespaces; the next fork is process 1 of its own. Raises OSError."""
    uid, gid = os.getuid(), os.getgid()
    _check(
        _LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC),
        "unshare",
    )
    _LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def enclose(rung: str, limits: Limits, view: View) -> None:
    """Shuts the calling child in for good. Raises OSError where the kernel refuses."""
    os.setsid()
    if rung == UNSHARE:
        _new_root(limits, view)
        _drop_capabilities()
    _limit(limits)
    _LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # The judge reads answers from the child's memory; a new user namespace forbade it.
    _LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    _LIBC.prctl(PR_SET_PTRACER, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)


def _limit(limits: Limits) -> None:
    cores = len(os.sched_getaffinity(0))
    seconds = int(limits.seconds * cores) + 1
    for what, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits.tmpfs_bytes),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_CPU, seconds),
    ):
        _, hard = resource.getrlimit(what)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (bound, bound))


def system_folders() -> tuple[str, ...]:
    """Interpreter, packages and toolchain: all that is bound into the new root, read-only."""
    import torch

    found = [p for p in ROOT_FOLDERS if Path(p).exists()]
    found += [f"/etc/{p}" for p in ETC if Path("/etc", p).exists()]
    found += [sys.prefix, sys.base_prefix, str(Path(torch.__file__).parent.parent)]
    for tool in ("g++", "clang++", "cc"):
        where = shutil.which(tool)
        found += [str(Path(where).resolve().parent)] if where else []
    kept: list[str] = []
    for path in found:
        if not any(path == k or path.startswith(f"{k}/") for k in kept):
            kept.append(path)
    return tuple(kept)


def _new_root(limits: Limits, view: View) -> None:
    """An empty root, filled with binds, made read-only; then the sized places become writable."""
    root = "/tmp"  # noqa: S108 (any folder serves as the mount point)
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    paths = [p for p in (*system_folders(), *view.readable, *view.writable) if Path(p).exists()]
    sources = [(os.open(p, os.O_PATH), p) for p in paths]
    _mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,mode=755")
    _devices(root, view.nodes)
    size = f"size={limits.tmpfs_bytes},mode=1777"
    for folder, flags in (("tmp", 0), ("dev/shm", MS_NOEXEC)):
        Path(root, folder).mkdir(parents=True)
        _mount("tmpfs", f"{root}/{folder}", "tmpfs", MS_NOSUID | MS_NODEV | flags, size)
    for fd, path in sources:
        _bind(fd, path, root)
        os.close(fd)
    Path(root, "proc").mkdir()
    _mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for name in PROC_ROOT if view.nodes else ():
        place = f"{root}/proc/{name}"
        if Path(place).exists():
            _mount(place, place, None, MS_BIND | MS_REC)
    _set_read_only(root, on=True)
    own_proc = ("/proc",) if view.nodes else ()
    for path in ("/tmp", "/dev/shm", *own_proc, *view.writable):  # noqa: S108
        _set_read_only(root + path, on=False)
    _pivot(root)


def _bind(fd: int, path: str, root: str) -> None:
    target = Path(root + path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if Path(path).is_symlink() and path in ROOT_FOLDERS:
        target.symlink_to(Path(path).readlink())
        return
    if Path(f"/proc/self/fd/{fd}").is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.touch()
    _mount(f"/proc/self/fd/{fd}", str(target), None, MS_BIND | MS_REC)


def _devices(root: str, nodes: Sequence[str]) -> None:
    for node in (*(f"/dev/{name}" for name in DEVICES), *nodes):
        place = Path(root + node)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        _mount(node, str(place), None, MS_BIND)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1")):
        Path(root, "dev", name).symlink_to(target)


def _set_read_only(path: str, *, on: bool) -> None:
    """On: the mount and all below it. Needs Linux 5.12; without capabilities it stays."""
    attributes = (ctypes.c_uint64 * 4)(int(on), int(not on), 0, 0)
    flags = AT_RECURSIVE if on else 0
    done = _LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, attributes, 32)
    _check(done, f"mount_setattr {path}")


def _pivot(root: str) -> None:
    number = PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"no pivot_root known for {platform.machine()}")
    os.chdir(root)
    _check(_LIBC.syscall(number, b".", b"."), "pivot_root")
    _check(_LIBC.umount2(b".", MNT_DETACH), "umount2")
    os.chdir("/tmp")  # noqa: S108


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    texts = [t.encode() if t is not None else None for t in (source, target, kind)]
    done = _LIBC.mount(*texts, ctypes.c_ulong(flags), data.encode() or None)
    _check(done, f"mount {target}")


def _drop_capabilities() -> None:
    """Uid 0 of the namespace keeps nothing, not even over an exec."""
    for capability in range(64):
        _LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _check(_LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def _check(done: int, what: str) -> None:
    if done != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
