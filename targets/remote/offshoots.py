"""Processes that a command started: found by session, group and a mark, killed until none is left.

On Linux the mark in the environment finds those that left the session; elsewhere `ps` knows groups.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from data.errors import MachineError

PROC = Path("/proc")
PATIENCE_S = 5.0
"""A killed process goes within milliseconds unless the kernel holds it in an input or output."""


def end(group: int, mark: str, *, since: int = 0) -> None:
    """Kills all of the group and all that carry the mark; MachineError when one will not go."""
    until = time.monotonic() + PATIENCE_S
    while left := alive(group, mark, since=since):
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            raise MachineError(
                f"process {left[0]} cannot be killed; look at it with ps on the host"
            )
        time.sleep(0.005)


def alive(group: int, mark: str, *, since: int = 0) -> list[int]:
    """Processes of the group or session, and our own with `NAME=value` in their environment.

    `since` (a `birth`) leaves out those that are older, which saves reading them.
    """
    if not (PROC / "self/stat").exists():
        return _by_ps(group)
    return [pid for pid in _pids() if _belongs(pid, group, mark.encode(), since)]


def birth(pid: int) -> int:
    """When the process started in clock ticks after boot, which no change of the clock moves.

    0 where the system does not tell, and when it is gone.
    """
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def born(pid: int) -> str:
    """When the process started, as the system spells it; empty when there is none or a zombie."""
    if (PROC / "self/stat").exists():
        fields = _stat(pid)
        return fields[19] if fields and fields[0] not in "ZX" else ""
    words = ("ps", "-o", "lstart=", "-p", str(pid))
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def _belongs(pid: int, group: int, mark: bytes, oldest: int) -> bool:
    fields = _stat(pid)
    if not fields or fields[0] in "ZX" or int(fields[19]) < oldest or pid == os.getpid():
        return False
    if group and str(group) in fields[2:4]:
        return True
    try:
        return mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # somebody else's, or gone
        return False


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 (faster)


def _stat(pid: int) -> list[str]:
    """Fields after the name: state, parent, group, session, ...; empty when it is gone."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _by_ps(group: int) -> list[int]:
    words = ("ps", "-axo", "pid=,pgid=,stat=")
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    rows = (line.split() for line in listed.splitlines())
    return [int(pid) for pid, owner, state in rows if int(owner) == group and state[0] != "Z"]
