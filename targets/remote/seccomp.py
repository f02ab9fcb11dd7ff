"""A filter of system calls: what no kernel needs and every escape starts with.

`ioctl` stays open: devices are driven by it. What is refused fails with EPERM, so that an honest
program can go another way; `clone3` with ENOSYS, since its flags lie in memory that a filter cannot
read: every libc then calls `clone`.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Iterator

from targets.remote import syscalls
from targets.remote.syscalls import LIBC, check

_ARCHITECTURES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
"""Column of the table, AUDIT_ARCH, number of seccomp(2)."""

DENIED = {
    # other processes: their memory, descriptors and counters
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "perf_event_open": (298, 241),
    # namespaces and mounts: ways to new capabilities
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # large parts of the kernel that unprivileged escapes have used
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # the machine itself
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "syslog": (103, 116),
    # memory that outlives its processes where there is no IPC namespace
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # the network, and sockets of other services that lie in the file system
    "connect": (42, 203),
}
INSIDE = ("shmget", "semget", "msgget", "mq_open", "connect")
"""Stays inside namespaces; a vendor's profiler talks to its own processes that way."""
SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
"""Refused where nothing else keeps signals inside."""
CLONE, CLONE3, SOCKET, TGKILL = (56, 220), (435, 435), (41, 198), (234, 131)
NAMESPACES = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
)
X32 = 0x40000000
"""Numbers from here are a second table of calls on x86-64, which would pass by the first."""
AF_UNIX, SOCK_DGRAM, KINDS = 1, 2, 0xF
SPEC_ALLOW = 4
"""Without it kernels before 5.16 slow down every load of the filtered process."""

_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets in struct seccomp_data; arguments by their low half (little endian)."""

Step = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def install(*, signals: bool, talks: bool = False) -> None:
    """Filters this process and all it starts; `signals`: may it signal other processes.

    `talks`: it may also have sockets and memory in common with others, for who has namespaces of
    the network and of IPC. Raises OSError where the kernel has no filters or the processor is
    unknown.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    steps = list(_steps(machine, signals=signals, talks=talks))
    program = _Program(len(steps), b"".join(struct.pack("<HBBI", *s) for s in steps))
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    number = _ARCHITECTURES[machine][2]
    check(LIBC.syscall(number, 1, SPEC_ALLOW, ctypes.byref(program)), "seccomp")


def _steps(machine: str, *, signals: bool, talks: bool) -> Iterator[Step]:
    column, arch, _ = _ARCHITECTURES[machine]
    yield _LOAD, 0, 0, _ARCH
    yield _EQUAL, 1, 0, arch
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER
    if machine == "x86_64":
        yield from _refused_if((_AT_LEAST, 0, 1, X32), errno.ENOSYS)
    yield from _refused_if((_EQUAL, 0, 1, CLONE3[column]), errno.ENOSYS)
    denied = [n for name, n in DENIED.items() if not (talks and name in INSIDE)]
    for numbers in (*denied, *(() if signals else SIGNALS.values())):
        yield from _refused_if((_EQUAL, 0, 1, numbers[column]))
    yield from _for_call(CLONE[column], [(_LOAD, 0, 0, _FIRST), *_refused_if(_has(NAMESPACES))])
    if not signals:
        yield from _for_call(TGKILL[column], _unless_first_is(os.getpid()))
    if not talks:
        yield from _own_sockets(SOCKET[column])
    yield _RETURN, 0, 0, _ALLOW


def _own_sockets(number: int) -> Iterator[Step]:
    """Pairs and streams of the file system's kind alone, none of datagrams."""
    datagram = [(_LOAD, 0, 0, _SECOND), (_AND, 0, 0, KINDS)]
    refused = _refused_if((_EQUAL, 0, 1, SOCK_DGRAM), errno.EACCES)
    yield from _for_call(number, [*_unless_first_is(AF_UNIX), *datagram, *refused])


def _has(bits: int) -> Step:
    return _ANY_BIT, 0, 1, bits


def _refused_if(test: Step, code: int = errno.EPERM) -> Iterator[Step]:
    """The test jumps over the next step when it does not hold."""
    yield test
    yield _RETURN, 0, 0, 0x00050000 | code


def _unless_first_is(value: int) -> list[Step]:
    """Refused unless the first argument has this value."""
    return [
        (_LOAD, 0, 0, _FIRST),
        (_EQUAL, 1, 0, value),
        (_RETURN, 0, 0, 0x00050000 | errno.EACCES),
    ]


def _for_call(number: int, steps: Iterable[Step]) -> Iterator[Step]:
    """Steps for one call, which is allowed at their end; they may change the accumulator."""
    inner = [*steps, (_RETURN, 0, 0, _ALLOW)]
    yield _EQUAL, 0, len(inner), number
    yield from inner
