"""A control group round one child: memory, processes, standstill; as far as the host allows.

Groups of version 1 are nested in the judge's own. In version 2 a group that holds processes cannot
share out controllers, so the judge's ancestors are tried too: one of them may be delegated to it.
The freezer of version 1 is left alone: what it holds cannot be killed, so that children of a
judge that was killed would stay for good.
"""

import contextlib
import time
from pathlib import Path

from targets.remote.sandbox import Limits

_ROOT = Path("/sys/fs/cgroup")
PREFIX = "kforge-"
OPTIONAL = ("memory.memsw.limit_in_bytes", "memory.swap.max", "memory.oom.group")
"""Not there without swap, or before Linux 4.19."""
STALE_S = 60.0
"""A group is joined within a second of its making."""
POLLS, POLL_S = 200, 0.0005


class Group:
    """The controllers that could be had for a process; may be none."""

    def __init__(self, name: str, limits: Limits, pid: int) -> None:
        """Made, limited and joined by the process, which has not started its work yet."""
        memory, count = str(limits.memory_bytes), str(limits.processes)
        old = {
            "memory": {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
            "pids": {"pids.max": count},
        }
        new = {
            "memory": {"memory.max": memory, "memory.swap.max": "0", "memory.oom.group": "1"},
            "pids": {"pids.max": count},
        }
        self._folders: dict[str, Path] = {}
        for controller, files in old.items():
            for parent in _old_parents(controller):
                if _made(parent / name, files, pid):
                    self._folders[controller] = parent / name
        missing = {c: files for c, files in new.items() if c not in self._folders}
        # A process is in one group of version 2: all that is missing, else standstill alone.
        for controllers in (missing, {}) if missing else ({},):
            parents = _new_parents()
            place = next((p for p in parents if _made_new(p, name, controllers, pid)), None)
            if place is not None:
                self._folders |= dict.fromkeys((*controllers, "freezer"), place / name)
                break

    @property
    def limits_memory(self) -> bool:
        return "memory" in self._folders

    @property
    def complete(self) -> bool:
        """Whether the kernel bounds memory and processes."""
        return {"memory", "pids"} <= self._folders.keys()

    def processes(self) -> list[int] | None:
        """All processes in the group, in the judge's numbering; None without a group."""
        for folder in self._folders.values():
            with contextlib.suppress(OSError):
                return [int(p) for p in (folder / "cgroup.procs").read_text().split()]
        return None

    def freeze(self, *, on: bool) -> bool:
        """Stops or continues all at once; False where that cannot be done or takes too long."""
        folder = self._folders.get("freezer")
        if folder is None:
            return False
        (folder / "cgroup.freeze").write_text(str(int(on)))
        wanted = f"frozen {int(on)}"
        for _ in range(POLLS):
            if wanted in (folder / "cgroup.events").read_text():
                return True
            time.sleep(POLL_S)
        return False

    def kill(self) -> bool:
        """Kills all at once, newborn ones too (Linux 5.14); False where that cannot be done."""
        folder = self._folders.get("freezer")
        with contextlib.suppress(OSError):
            if folder is not None:
                (folder / "cgroup.kill").write_text("1")
                return True
        return False

    def cpu_ns(self) -> int | None:
        """Processor time of all that ever lived in the group; None where it is not counted."""
        folder = self._folders.get("freezer")
        with contextlib.suppress(OSError):
            if folder is not None:
                return int(_counts(folder / "cpu.stat")["usage_usec"]) * 1000
        return None

    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the group for its memory."""
        folder = self._folders.get("memory")
        for name in ("memory.oom_control", "memory.events"):
            with contextlib.suppress(OSError):
                return folder is not None and _counts(folder / name).get("oom_kill", 0) > 0
        return False

    def close(self) -> None:
        """Removes the groups; the kernel needs a moment after the last process is gone."""
        for folder in set(self._folders.values()):
            for _ in range(POLLS):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)
                else:
                    break
        self._folders = {}


def sweep() -> None:
    """Removes groups that killed judges left: the kernel refuses where somebody lives."""
    places = {*_old_parents("memory"), *_old_parents("pids"), *_new_parents()}
    for folder in (f for parent in places for f in parent.glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > STALE_S:
                folder.rmdir()


def _made(folder: Path, files: dict[str, str], pid: int) -> bool:
    """A group with these limits, joined by the process."""
    try:
        folder.mkdir()
        for file, value in files.items():
            if file not in OPTIONAL or (folder / file).exists():
                (folder / file).write_text(value)
        (folder / "cgroup.procs").write_text(str(pid))
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        return False
    return True


def _made_new(parent: Path, name: str, controllers: dict[str, dict[str, str]], pid: int) -> bool:
    """The same in version 2, with the controllers shared out by the parent."""
    shared = parent / "cgroup.subtree_control"
    try:
        for controller in controllers:
            if controller not in shared.read_text().split():
                shared.write_text(f"+{controller}")
    except OSError:
        return False
    files = {"cgroup.freeze": "0"}
    for values in controllers.values():
        files |= values
    return _made(parent / name, files, pid)


def _old_parents(controller: str) -> list[Path]:
    """The judge's own group in version 1."""
    rows = (row for row in _memberships() if controller in row[1].split(","))
    return [_ROOT / controller / path.lstrip("/") for _, _, path in rows]


def _new_parents() -> list[Path]:
    """The judge's own group in version 2 and all above it."""
    base = _ROOT / "unified" if (_ROOT / "unified").exists() else _ROOT
    own = [base / path.lstrip("/") for number, _, path in _memberships() if number == "0"]
    return [p for start in own for p in (start, *start.parents) if p.is_relative_to(base)]


def _memberships() -> list[tuple[str, str, str]]:
    """Number of the hierarchy, its controllers, the judge's path in it."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    return [(row[0], row[1], row[2]) for row in (line.split(":", 2) for line in lines)]


def _counts(file: Path) -> dict[str, int]:
    rows = (line.split() for line in file.read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}
