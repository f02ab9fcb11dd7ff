"""Who else uses a device by hand, without a lease, where the vendor's tool or `ps` can tell."""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from targets.remote.lease import HOLDER

TOOL_S = 10.0
OURS = ("targets.remote.serve", "targets.remote.warm", "kforge-remote.pyz")
"""In the command of a judge or of its warm process, which hold contexts but time only by lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """A process on a device."""

    pid: int
    user: str
    command: str

    def __str__(self) -> str:
        return f"{self.user}, pid {self.pid} ({self.command[:60]})"


Ask = Callable[[int], tuple[int, ...]]


def _nvidia(index: int) -> tuple[int, ...]:
    words = ("nvidia-smi", "-i", str(index), "--query-compute-apps=pid", "--format=csv,noheader")
    return tuple(int(line) for line in _said(words).split() if line.isdigit())


def _amd(_: int) -> tuple[int, ...]:
    """Of all cards: this tool does not say which one a process uses."""
    lines = (line.split() for line in _said(("rocm-smi", "--showpids")).splitlines())
    return tuple(int(words[0]) for words in lines if words and words[0].isdigit())


ASK: Mapping[str, Ask] = {"nvidia": _nvidia, "amd": _amd}
"""By target; a processor is never anybody's alone, so nobody is asked about it."""


def occupants(target: str, index: int) -> tuple[Occupant, ...]:
    """Processes on the device that are not KForge's; empty when nothing can tell."""
    pids = ASK[target](index) if target in ASK else ()
    return tuple(o for pid in pids if (o := _named(pid)) is not None)


def _named(pid: int) -> Occupant | None:
    """The process, unless it is gone or of KForge, which goes by the lease."""
    user, _, command = _said(("ps", "-o", "user=,args=", "-p", str(pid))).strip().partition(" ")
    try:
        marked = f"{HOLDER}=".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        marked = False
    ours = marked or any(word in command for word in OURS)
    return None if ours or not user else Occupant(pid=pid, user=user, command=command.strip())


def _said(words: tuple[str, ...]) -> str:
    """What a tool prints; empty when it is not there, fails or hangs."""
    if shutil.which(words[0]) is None:
        return ""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=TOOL_S, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
