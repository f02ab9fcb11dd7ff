"""Clears up on a host: `python -m targets.machines.reaping ROOT [DAYS]`, one line of JSON.

Ends residents that serve nobody, the processes of jobs that were lost, and removes answers, code
and caches that are old, and temporary folders whose processes were killed. What a connected
controller uses is left alone.
"""

import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from targets.machines.attach import meeting_point
from targets.machines.jobs import KEPT_S, clear
from targets.remote import strays
from targets.remote.offshoots import born

CODE = Path(__file__).resolve().parents[2]
DAYS = 7.0
ANSWER_S = 10.0
END_S = 15.0


def reap(root: Path, days: float) -> dict[str, int]:
    """How many residents, jobs and old files were cleared away, and how many residents are busy."""
    own = meeting_point(root)
    versions = own.parent.glob(f"{own.name.partition('-')[0]}-*.sock")
    ended = [_retired(place) for place in versions]
    jobs = 0 if False in ended else _jobs(root)
    return {
        "residents": ended.count(True),
        "busy": ended.count(False),
        "jobs": jobs,
        "old": _old(root, days) + strays.sweep(),
    }


def main(arguments: list[str]) -> None:
    """The process itself: the root was expanded by whoever started it."""
    root = Path(arguments[0])
    days = float(arguments[1]) if len(arguments) > 1 else DAYS
    try:
        told: dict[str, object] = {"attached": True, **reap(root, days)}
    except OSError as error:
        told = {"fatal": f"{root}: {error.strerror or error}"}
    print(json.dumps(told), flush=True)


def _retired(place: Path) -> bool | None:
    """Whether a resident has ended; False when it serves somebody, None when none was there."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(ANSWER_S)
        try:
            link.connect(str(place))
            asked = {"id": 1, "op": "retire", "args": {}}
            link.sendall(b'{"client": "reap"}\n' + json.dumps(asked).encode() + b"\n")
            answer = json.loads(link.makefile("rb").readline())
        except (OSError, ValueError):
            with suppress(OSError):
                place.unlink()
            return None
    if answer["value"]["others"]:
        return False
    until = time.monotonic() + END_S
    while (runs := bool(born(int(answer["value"]["pid"])))) and time.monotonic() < until:
        time.sleep(0.05)
    return not runs


def _jobs(root: Path) -> int:
    folder = root / "jobs"
    return clear(folder, older_than_s=KEPT_S) if folder.is_dir() else 0


def _old(root: Path, days: float) -> int:
    """Versions of our code and caches that nobody has used for so long."""
    before, count = time.time() - days * 86400, 0
    for path in (*_within(root / "code"), *_within(root / "cache")):
        if path.name != CODE.name and _used(path) < before:
            shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 (a file, where it is one)
            count += 1
    return count


def _within(folder: Path) -> Iterator[Path]:
    yield from folder.iterdir() if folder.is_dir() else ()


def _used(path: Path) -> float:
    """When anything in it was changed last."""
    newest = 0.0
    for found in (path, *path.rglob("*")):
        with suppress(OSError):
            newest = max(newest, found.lstat().st_mtime)
    return newest


if __name__ == "__main__":
    main(sys.argv[1:])
