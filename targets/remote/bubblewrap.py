"""Bubblewrap round the warm process: where it is found and how it is called.

`python -m targets.remote.bubblewrap PLAN COMMAND...` is for root: it makes a root folder of what
the sandbox shows, so that a user who may not pass the folders above it finds them there, becomes
that user and turns into the command, which is bubblewrap.
"""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from targets.remote import root, syscalls, users
from targets.remote.users import User

OPTION = "KFORGE_BUBBLEWRAP"
"""Environment variable: a folder with `bwrap`, and its loader and libraries if it needs them."""
LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
ROOM_BYTES = 64 << 20
"""Of the warm process's own temporary folder."""
NAMESPACES = ("user", "pid", "net", "ipc", "uts")
"""New ones. User namespaces stay possible inside: each child makes one, then may not again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What the warm process sees beside the system."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        return (*root.system_folders(), *self.readable)


def found() -> tuple[str, ...] | None:
    """The command that starts bubblewrap: out of the given folder, else the system's."""
    given = Path(os.environ.get(OPTION, "")).absolute()
    if not os.environ.get(OPTION):
        system = shutil.which("bwrap")
        return (system,) if system else None
    program = given / "bwrap"
    if not program.is_file():
        return None
    loader = next((given / name for name in LOADERS if (given / name).is_file()), None)
    if loader is None:
        return (str(program),)
    return (str(loader), "--library-path", str(given), str(program))


def command(program: Sequence[str], inside: Inside, user: User | None) -> tuple[str, ...]:
    """To be put before the command that runs inside."""
    wrapped = (*program, *_arguments(inside))
    if user is None:
        return wrapped
    own = () if program[0].startswith("/usr/") else (str(Path(program[-1]).parent),)
    plan = {
        "folders": [*inside.folders, *own, *inside.writable],
        "uid": user.uid,
        "groups": user.groups,
    }
    return (sys.executable, "-m", "targets.remote.bubblewrap", json.dumps(plan), *wrapped)


def _arguments(inside: Inside) -> tuple[str, ...]:
    flags = [f"--unshare-{name}" for name in NAMESPACES]
    flags += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--proc", "/proc"]
    flags += ["--dev", "/dev"]
    for node in root.accelerators():
        flags += ["--dev-bind-try", node, node]
    flags += ["--size", str(ROOM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    flags += ["--size", str(ROOM_BYTES), "--tmpfs", root.PLACE]
    for path in inside.folders:
        if path in root.FOLDERS and Path(path).is_symlink():
            flags += ["--symlink", str(Path(path).readlink()), path]
        else:
            flags += ["--ro-bind-try", path, path]
    for path in inside.writable:
        flags += ["--bind", path, path]
    return (*flags, "--remount-ro", "/", "--chdir", root.PLACE, "--")


def main(plan: dict[str, object], program: list[str]) -> None:
    """Makes the root, becomes the user, turns into the program."""
    folders, uid, groups = plan["folders"], plan["uid"], plan["groups"]
    assert isinstance(folders, list)
    assert isinstance(groups, list)
    assert isinstance(uid, int)
    sources = root.taken(folders)
    syscalls.unshare(syscalls.CLONE_NEWNS)
    root.stage(sources, ROOM_BYTES)
    users.become(User(uid=uid, groups=tuple(groups)))
    syscalls.drop_capabilities()
    os.execv(program[0], program)  # noqa: S606 (a list, no shell)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
