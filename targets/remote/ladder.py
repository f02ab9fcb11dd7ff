"""The rungs of the sandbox, strongest first, and which of them a machine must offer.

Recorded with every result; `+cgroup` is added where the kernel bounds memory and processes.
"""

from collections.abc import Sequence
from enum import StrEnum

from data.errors import MachineError


class Rung(StrEnum):
    """What keeps a candidate in."""

    BUBBLEWRAP = "bubblewrap"
    """All children live inside bubblewrap, each in namespaces and a root of its own besides."""
    UNSHARE = "unshare"
    """Own user, mount, process, network and IPC namespaces; a read-only root of chosen folders."""
    LANDLOCK = "landlock"
    """Reads and writes chosen folders only; it sees other processes and cannot reach them."""
    PROCESS = "process"
    """A session with limits and a filter of system calls: reads and writes what the user may."""

    @property
    def namespaces(self) -> bool:
        """Whether processes and mounts of a child are its own."""
        return self in (Rung.BUBBLEWRAP, Rung.UNSHARE)


OPTION = "KFORGE_ISOLATION"
"""Environment variable on the machine: the weakest rung that may run a candidate."""
DEFAULT = Rung.LANDLOCK


def accepted(weakest: str | None) -> tuple[Rung, ...]:
    """The rungs from the strongest to the weakest that is allowed; MachineError for no rung.

    >>> [str(r) for r in accepted("unshare")]
    ['bubblewrap', 'unshare']
    """
    rungs = tuple(Rung)
    known = ", ".join(rungs)
    if weakest and weakest not in rungs:
        raise MachineError(f"{OPTION} is {weakest!r}, expected one of {known}")
    return rungs[: rungs.index(Rung(weakest or DEFAULT)) + 1]


def refusal(wanted: Sequence[Rung]) -> str:
    """One line for a machine that offers none of these."""
    names = ", ".join(wanted)
    text = f"candidates cannot be shut in on this machine (tried: {names}): install bubblewrap"
    if Rung.PROCESS in wanted:
        return text
    return f"{text}, or set {OPTION}=process to run them with no more than limits and a deadline"
