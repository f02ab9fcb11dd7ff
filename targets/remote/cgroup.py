"""A control group of the judge's own round one child: memory, processes; none where not allowed."""

import contextlib
import os
import time
from pathlib import Path

from targets.remote.sandbox import Limits

_ROOT = Path("/sys/fs/cgroup")
STALE_S = 60.0
"""A group is joined within a second of its making."""


class Group:
    """Controllers that could be made, nested in the judge's own groups; may be none."""

    def __init__(self, name: str, limits: Limits) -> None:
        self._folders: dict[str, Path] = {}
        values = {
            "memory": (("memory.limit_in_bytes", "memory.max"), limits.memory_bytes),
            "pids": (("pids.max", "pids.max"), limits.processes),
        }
        for controller, (files, value) in values.items():
            folder = _make(controller, name, files, value)
            if folder is not None:
                self._folders[controller] = folder

    @property
    def limits_memory(self) -> bool:
        return "memory" in self._folders

    def add(self, pid: int) -> None:
        for folder in set(self._folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def processes(self) -> list[int] | None:
        """All processes in the group, in the judge's numbering; None without a group."""
        for folder in self._folders.values():
            with contextlib.suppress(OSError):
                return [int(p) for p in (folder / "cgroup.procs").read_text().split()]
        return None

    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the group for its memory."""
        folder = self._folders.get("memory")
        if folder is None:
            return False
        for name in ("memory.oom_control", "memory.events"):
            with contextlib.suppress(OSError):
                text = (folder / name).read_text()
                counts = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
                return int(counts.get("oom_kill", 0)) > 0
        return False

    def close(self) -> None:
        """Removes the groups; the kernel needs a moment after the last process is gone."""
        for folder in set(self._folders.values()):
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)
        self._folders = {}


def sweep() -> None:
    """Removes groups that killed judges left: the kernel refuses where somebody lives."""
    for controller in ("memory", "pids"):
        for parent in _parents(controller):
            for folder in parent.glob("kforge-*") if parent is not None else ():
                with contextlib.suppress(OSError):
                    if time.time() - folder.stat().st_mtime > STALE_S:
                        folder.rmdir()


def _make(controller: str, name: str, files: tuple[str, str], value: int) -> Path | None:
    """The folder of a limited group; a hybrid host may offer v1, v2 or neither."""
    for parent, file in zip(_parents(controller), files, strict=True):
        if parent is None:
            continue
        folder = parent / name
        try:
            folder.mkdir(exist_ok=True)
            if (folder / file).exists():
                (folder / file).write_text(str(value))
                return folder
            folder.rmdir()
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
    return None


def _parents(controller: str) -> tuple[Path | None, Path | None]:
    """The judge's own group in version 1 and in version 2."""
    old = new = None
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{os.getpid()}/cgroup").read_text().splitlines():
            number, names, path = line.split(":", 2)
            if controller in names.split(","):
                old = _ROOT / controller / path.lstrip("/")
            elif number == "0":
                base = _ROOT / "unified" if (_ROOT / "unified").exists() else _ROOT
                new = base / path.lstrip("/")
    return old, new
