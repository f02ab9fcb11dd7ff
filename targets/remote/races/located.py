"""Offsets in a library as lines of the kernel source that it was made from."""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from targets.remote.kforge_launch import CPP
from targets.remote.sandbox import Limits, View
from targets.remote.walled import walled

LIMITS = Limits(memory_bytes=1 << 30, seconds=10.0, tmpfs_bytes=1 << 20)
_LINE = re.compile(rf"(?:^|/){re.escape(CPP.source)}:(?P<line>\d+)")


def lines(library: Path, offsets: Iterable[int], room: Path) -> dict[int, int]:
    """By offset, just past an instruction: its line, of a header's code the line that uses it.

    Debug information is the kernel author's: it is read behind the walls, with `room` to work in.
    """
    wanted = sorted({offset for offset in offsets if offset > 0})
    program = shutil.which("addr2line")
    if program is None or not wanted:
        return {}
    command = (program, "-a", "-i", "-e", str(library), *(hex(offset - 1) for offset in wanted))
    view = View(readable=(str(library.parent),))
    ended = walled(lambda _: os.execv(program, command), room, LIMITS, view)  # noqa: S606 (a list)
    parts = re.split(r"^0x[0-9a-f]+$", ended.log, flags=re.MULTILINE)[1:]
    found: dict[int, int] = {}
    for offset, part in zip(wanted, parts, strict=False):
        at = next(filter(None, map(_LINE.search, part.splitlines())), None)
        if at is not None:
            found[offset] = int(at["line"])
    return found
