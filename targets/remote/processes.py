"""Processes as procfs shows them: who belongs together, who runs, what they used."""

import contextlib
import os
import signal
from pathlib import Path


def send(pid: int, number: int) -> None:
    """A signal to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def everyone() -> list[int]:
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]


def namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    parents = {p: _parent(p) for p in everyone()}
    found = [pid] if pid in parents else []
    for p in found:
        found += [c for c, parent in parents.items() if parent == p and c not in found]
    return found


def _stat(path: str) -> list[str]:
    """Fields of a stat file after the name: state, parent, ...; empty when it is gone."""
    try:
        with open(path) as file:  # noqa: PTH123 (called for every thread, Path costs 10 us)
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _parent(pid: int) -> int:
    fields = _stat(f"/proc/{pid}/stat")
    return int(fields[1]) if fields else 0


def _threads(pid: int) -> list[str]:
    try:
        return [t.name for t in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def stopped(pid: int) -> bool:
    states = (_stat(f"/proc/{pid}/task/{t}/stat")[:1] for t in _threads(pid))
    return all(s in ([], ["T"], ["Z"], ["X"], ["t"]) for s in states)


def cpu_ns(pid: int) -> int:
    total = 0
    for thread in _threads(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0])
    return total


def resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGESIZE")
    return 0


def proportional(pid: int) -> int:
    """Bytes in memory, a page shared by n processes counted as its n-th part; costs 1 ms."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(text.split("\nPss:")[1].split()[0]) << 10
    return 0


def minor_faults(pid: int) -> int:
    """Pages that a process had to map so far; 0 when it has gone."""
    fields = _stat(f"/proc/{pid}/stat")
    return int(fields[7]) if fields else 0


def runnable() -> int:
    """Threads of the whole host that run or could, the asking one included; 1 where unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    return 1


def disk_bytes(folder: str, enough: int) -> int:
    """What the files below a folder take, a page at least each; counting ends above `enough`."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += max(os.lstat(f"{place}/{name}").st_blocks * 512, 4096)
            if total > enough:
                return total
    return total


def reap() -> None:
    """Kills descendants until none is left, not even a name; of who adopts orphans, at its end."""
    me = os.getpid()
    while True:
        for pid in descendants(me)[1:]:
            send(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, 0):
                pass
        except ChildProcessError:
            return
