"""System calls of Linux that Python does not wrap; each raises OSError with its name."""

import ctypes
import fcntl
import os
import platform
import socket
import struct
from collections.abc import Sequence

LIBC = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS = 0x40000000, 0x08000000, 0x04000000
CLONE_NEWCGROUP = 0x02000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REC, MS_PRIVATE = 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_CAPBSET_DROP = 1, 4, 8, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_SET_PTRACER = 36, 38, 0x59616D61
CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE = 5, 6, 7, 19
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH = 1, 4
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
AT_RECURSIVE, AT_FDCWD = 0x8000, -100
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
_CAPABILITIES_V3 = 0x20080522


def prctl(option: int, value: int = 0) -> None:
    """Answers are ignored: an older kernel knows fewer options."""
    LIBC.prctl(option, ctypes.c_ulong(value & (2**64 - 1)), 0, 0, 0)


def unshare(flags: int) -> None:
    check(LIBC.unshare(flags), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    texts = [t.encode() if t is not None else None for t in (source, target, kind)]
    done = LIBC.mount(*texts, ctypes.c_ulong(flags), data.encode() or None)
    check(done, f"mount {target}")


def detached(path: str) -> int:
    """A descriptor of a copy of what is mounted there and below, not attached anywhere yet."""
    flags = OPEN_TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC
    fd = int(LIBC.syscall(OPEN_TREE, AT_FDCWD, os.fsencode(path), flags))
    check(fd, f"open_tree {path}")
    return fd


def attach(fd: int, path: str) -> None:
    """Mounts a detached copy; the descriptor is closed."""
    done = LIBC.syscall(MOVE_MOUNT, fd, b"", AT_FDCWD, os.fsencode(path), MOVE_MOUNT_F_EMPTY_PATH)
    check(done, f"move_mount {path}")
    os.close(fd)


def set_read_only(path: str, *, on: bool) -> None:
    """On: the mount and all below it. Needs Linux 5.12; without capabilities it stays."""
    attributes = (ctypes.c_uint64 * 4)(int(on), int(not on), MS_PRIVATE if on else 0, 0)
    flags = AT_RECURSIVE if on else 0
    done = LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, attributes, 32)
    check(done, f"mount_setattr {path}")


def pivot_root(root: str) -> None:
    """`root` becomes the root folder, the old one is gone."""
    number = PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"no pivot_root known for {platform.machine()}")
    os.chdir(root)
    check(LIBC.syscall(number, b".", b"."), "pivot_root")
    check(LIBC.umount2(b".", MNT_DETACH), "umount2")


def loopback_up() -> None:
    """In a network namespace of one's own, where it is down at first."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def drop_capabilities() -> None:
    """Not even uid 0 of a namespace gets one back, over an exec or otherwise."""
    for capability in range(64):
        prctl(PR_CAPBSET_DROP, capability)
    _capset((0, 0), (0, 0))


def effective_capabilities() -> int:
    """A bit for each capability that this process has now."""
    with open("/proc/self/status") as file:  # noqa: PTH123 (a Path costs as much as the read)
        line = next(row for row in file if row.startswith("CapEff:"))
    return int(line.split()[1], 16)


def raise_capabilities(mask: int) -> None:
    """Makes permitted capabilities effective again, after a change of the user id."""
    low, high = mask & 0xFFFFFFFF, mask >> 32
    _capset((low, high), (low, high))


def _capset(effective: Sequence[int], permitted: Sequence[int]) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    words = (effective[0], permitted[0], 0, effective[1], permitted[1], 0)
    check(LIBC.capset(header, (ctypes.c_uint32 * 6)(*words)), "capset")


def check(done: int, what: str) -> None:
    """OSError unless the call has succeeded."""
    if done < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
