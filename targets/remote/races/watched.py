"""In the child: a call of a kernel whose threads take turns, and what was seen of them."""

import ctypes
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RACES = 8
LIMIT_S = 5.0
"""A call that takes longer is left: what has been seen by then counts."""
LOOK_S = 0.005
WRITE = 1
"""Bit of `Kind` in `shadow.hpp`."""


class _Race(ctypes.Structure):
    _fields_ = (
        ("pc", ctypes.c_uint32),
        ("other", ctypes.c_uint32),
        ("kind", ctypes.c_uint8),
        ("other_kind", ctypes.c_uint8),
        ("at", ctypes.c_void_p),
    )


class _Report(ctypes.Structure):
    _fields_ = (
        ("races", ctypes.c_int),
        ("regions", ctypes.c_int),
        ("threads", ctypes.c_int),
        ("stopped", ctypes.c_int),
        ("looked", ctypes.c_long),
        ("why", ctypes.c_char_p),
        ("race", _Race * RACES),
    )


def watched(call: Callable[[], object], folder: Path, turn: int) -> list[dict[str, Any]]:
    """For each library in `folder` what it saw of the call; `turn` varies who comes first.

    Raises what the call raises. A call that has seen enough is left where it is.
    """
    every = {path.name: ctypes.CDLL(str(path)) for path in sorted(folder.glob("*.so"))}
    libraries = {name: lib for name, lib in every.items() if hasattr(lib, "kf_races_begin")}
    for library in libraries.values():
        library.kf_races_begin(turn)
    raised: list[BaseException] = []
    thread = threading.Thread(target=_caught, args=(call, raised), daemon=True)
    thread.start()
    until = time.monotonic() + LIMIT_S
    while thread.is_alive() and time.monotonic() < until:
        thread.join(LOOK_S)
        if any(_report(library).stopped for library in libraries.values()):
            break
    late = time.monotonic() >= until
    if raised:
        raise raised[0]
    return [_told(name, _report(library), late=late) for name, library in libraries.items()]


def _caught(call: Callable[[], object], raised: list[BaseException]) -> None:
    try:
        call()
    except BaseException as error:  # noqa: BLE001 (raised again by whoever waits)
        raised.append(error)


def _report(library: ctypes.CDLL) -> _Report:
    report = _Report()
    library.kf_races_report(ctypes.byref(report))
    return report


def _told(name: str, report: _Report, *, late: bool) -> dict[str, Any]:
    """Plain data; places are offsets in the library, just past the access."""
    why = report.why.decode(errors="replace") if report.stopped and report.why else ""
    return {
        "library": name,
        "threads": report.threads,
        "accesses": report.looked,
        "why": why or ("it takes too long when its accesses are looked at" if late else ""),
        "races": [
            [race.pc, bool(race.kind & WRITE), race.other, bool(race.other_kind & WRITE)]
            for race in report.race[: report.races]
        ],
    }
