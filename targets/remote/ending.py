"""What it means when a child answers with an error, with something else or not at all."""

from typing import Any

from data.records import RunStatus
from targets.remote.offspring import Child
from targets.remote.output import SideFault
from targets.remote.scrub import scrub


def raised(told: Any, failed: RunStatus) -> SideFault:
    """What an error that a child tells of is; `failed` unless it names something worse."""
    if not isinstance(told, dict):
        return forged("an error that is none")
    kind, message, trace = (str(told.get(k, ""))[:4100] for k in ("type", "message", "trace"))
    text = scrub(f"{kind}: {message}" + (f" ({trace})" if trace else ""))
    if kind in ("MemoryError", "OutOfMemoryError") or "can't allocate memory" in message:
        return SideFault(RunStatus.OUT_OF_MEMORY, text)
    return SideFault(failed, text)


def ended(child: Child) -> SideFault:
    """The process is gone: why."""
    how = child.end()
    if child.out_of_memory():
        return SideFault(RunStatus.OUT_OF_MEMORY, "killed at the memory limit")
    if how == "exited with status 0":
        return SideFault(RunStatus.FORGED, "the process ended with status 0 instead of answering")
    if not how:
        return SideFault(RunStatus.FORGED, "the process closed its channel instead of answering")
    if how == "killed by SIGXCPU":
        return SideFault(RunStatus.TIMED_OUT, "its processor time ran out")
    return SideFault(RunStatus.CRASHED, f"the process was {how}" if "killed" in how else how)


def forged(what: str) -> SideFault:
    """Something other than an answer came."""
    return SideFault(RunStatus.FORGED, f"instead of an answer there came {what}")
