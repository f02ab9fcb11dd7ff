"""Who else used the processors while something was measured here; for people who doubt a time."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from targets.remote.processes import cpu_ns, everyone

MUCH = 0.1
"""Share of one processor from which on a neighbour is named."""
NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All processes at one moment."""

    at: float
    used_ns: Mapping[int, int]
    """Processor time by process id."""
    load: float


def seen() -> Seen:
    """What runs now; 5 ms for 200 processes."""
    used = {pid: cpu_ns(pid) for pid in everyone() if pid != os.getpid()}
    return Seen(at=time.monotonic(), used_ns=used, load=os.getloadavg()[0])


def since(before: Seen) -> dict[str, str]:
    """The load then and now, and the names of those who were there all the time and worked."""
    now = seen()
    lasted_ns = max((now.at - before.at) * 1e9, 1.0)
    shares = {
        pid: (used - before.used_ns[pid]) / lasted_ns
        for pid, used in now.used_ns.items()
        if pid in before.used_ns
    }
    busy = sorted((p for p in shares if shares[p] >= MUCH), key=lambda p: -shares[p])[:NAMED]
    told = ", ".join(f"{_name(p)} {100 * shares[p]:.0f} %" for p in busy)
    return {"load_before": f"{before.load:.1f}", "load": f"{now.load:.1f}", "neighbours": told}


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"
