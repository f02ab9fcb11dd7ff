"""Landlock: a process gives up, for good, all files but those of a list (from Linux 5.13)."""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from targets.remote import syscalls
from targets.remote.syscalls import LIBC, check

CREATE, ADD, RESTRICT = 444, 445, 446
LEAST_ABI = 3
"""Linux 6.2: before it anything that the user may write could be truncated."""
SIGNALS_ABI = 6
"""Linux 6.12: signals stay inside."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_BEFORE_REFER = (1 << 13) - 1
READ = _EXECUTE | _READ_FILE | _READ_DIR
DEVICE = _READ_FILE | _READ_DIR | _WRITE_FILE | _IOCTL_DEVICE
WRITE = _BEFORE_REFER | _REFER | _TRUNCATE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_TCP, _SCOPES = 0b11, 0b11


def abi() -> int:
    """The version that the kernel speaks; 0 without Landlock."""
    return max(int(LIBC.syscall(CREATE, None, ctypes.c_size_t(0), 1)), 0)


def restrict(rules: Iterable[tuple[str, int]]) -> None:
    """From now on only these paths, each with what may be done below it. Raises OSError."""
    version = abi()
    if version < LEAST_ABI:
        raise OSError(f"Landlock of this kernel has version {version}, {LEAST_ABI} is needed")
    files = WRITE | (_IOCTL_DEVICE if version >= 5 else 0)
    handled = struct.pack(
        "<QQQ", files, _TCP if version >= 4 else 0, _SCOPES if version >= SIGNALS_ABI else 0
    )
    size = 24 if version >= SIGNALS_ABI else 16 if version >= 4 else 8
    ruleset = LIBC.syscall(CREATE, handled, ctypes.c_size_t(size), 0)
    check(ruleset, "landlock_create_ruleset")
    for path, rights in rules:
        _allow(ruleset, path, rights & files)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    check(LIBC.syscall(RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it is not there, or not for this user
        return
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        rights &= _OF_FILES
    rule = struct.pack("<Qi", rights, fd)
    check(LIBC.syscall(ADD, ruleset, 1, rule, 0), f"landlock {path}")
    os.close(fd)
