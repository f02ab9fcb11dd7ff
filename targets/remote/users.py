"""Whom children are: root gives them user ids that nobody else on the host has."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from targets.remote import syscalls
from targets.remote.syscalls import CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE

BASELINE_ID, CANDIDATE_ID = 60600, 60601
"""systemd's list of ids leaves 60578 to 61183 unused. Two: a candidate cannot signal a baseline."""
DEVICE_GROUPS = ("nvidia*", "dri/*", "kfd", "accel*")
_NEEDED = (CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_SYS_PTRACE)
"""The last one reads answers out of a process of another user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """User and group id of a child, and the groups that may use the devices here."""

    uid: int
    groups: tuple[int, ...] = ()


def spare(*, trusted: bool, paths: Sequence[str] = ()) -> User | None:
    """The user for a baseline or a candidate; None: this process cannot become another one.

    Nor can it where the other user would not reach these paths.
    """
    effective = syscalls.effective_capabilities()
    uid = BASELINE_ID if trusted else CANDIDATE_ID
    if os.geteuid() != 0 or not all(effective >> c & 1 for c in _NEEDED) or not _mapped(uid):
        return None
    places = {place for p in paths for place in (Path(p), *Path(p).parents)}
    if not all(place.stat().st_mode & 1 for place in places if place.exists()):
        return None
    return User(uid=uid, groups=_device_groups())


def become(user: User, *, keep_capabilities: bool = False) -> None:
    """For good. Kept capabilities are for making namespaces as root may."""
    kept = syscalls.effective_capabilities() if keep_capabilities else 0
    syscalls.prctl(syscalls.PR_SET_KEEPCAPS, int(keep_capabilities))
    os.setgroups(user.groups)
    os.setresgid(user.uid, user.uid, user.uid)
    os.setresuid(user.uid, user.uid, user.uid)
    if keep_capabilities:
        syscalls.raise_capabilities(kept)


def own(folder: Path, uid: int) -> None:
    """The folder and all in it belong to this user, links themselves included."""
    for place, folders, files in os.walk(folder):
        for path in (place, *(os.path.join(place, n) for n in (*folders, *files))):  # noqa: PTH118
            if os.lstat(path).st_uid != uid:
                os.lchown(path, uid, uid)


def _mapped(uid: int) -> bool:
    """Whether the id exists in this user namespace: a container may have a single one."""
    rows = [[int(n) for n in r.split()] for r in Path("/proc/self/uid_map").read_text().split("\n")]
    return any(first <= uid < first + count for first, _, count in filter(None, rows))


def _device_groups() -> tuple[int, ...]:
    """Groups other than root's that may write to an accelerator's device nodes."""
    nodes = (n for pattern in DEVICE_GROUPS for n in Path("/dev").glob(pattern))
    found = {s.st_gid for n in nodes if (s := n.stat()).st_mode & 0o060 == 0o060}
    return tuple(sorted(found - {0}))
