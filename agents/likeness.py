"""Whether a prompt is the recorded one, and where the two first differ.

What is probed anew on each machine may differ: the device's section, the roofline floor and
PyTorch's time of each shape. All else must agree to the letter.
"""

import re
from collections.abc import Sequence

from agents.llm import Message

_DEVICE = re.compile(r"^# Device\n.*?(?=^# |\Z)", re.MULTILINE | re.DOTALL)
_TIMES = re.compile(r"; (?:roofline floor|PyTorch takes) [\d.e+-]+ us")
SHOWN = 70
"""Characters of a line that are told, from a few before the first that differs."""
BEFORE = 20


def difference(recorded: Sequence[Message], asked: Sequence[Message]) -> str | None:
    r"""The first differing line of two conversations, in words; None when they are the same.

    >>> was, now = ([{"role": "user", "content": f"a\ntile {n}"}] for n in (32, 64))
    >>> difference(was, now)
    "line 2 of the user message: recorded 'tile 32', now 'tile 64'"
    >>> difference(was, was)
    """
    for was, now in zip(recorded, asked, strict=False):
        if (found := _first(was, now)) is not None:
            return found
    if len(recorded) != len(asked):
        return f"recorded {len(recorded)} messages, now {len(asked)}"
    return None


def _first(was: Message, now: Message) -> str | None:
    if was["role"] != now["role"]:
        return f"a message of the {was['role']} is recorded, now one of the {now['role']}"
    old, new = (_lasting(m["content"]).split("\n") for m in (was, now))
    if old == new:
        return None
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    at = min(len(old), len(new)) if at is None else at
    a, b = (lines[at] if at < len(lines) else None for lines in (old, new))
    return f"line {at + 1} of the {was['role']} message: recorded {_cut(a, b)}, now {_cut(b, a)}"


def _lasting(text: str) -> str:
    """The text without what the machine says; lines keep their number up to there."""
    return _TIMES.sub("", _DEVICE.sub("# Device\n", text))


def _cut(line: str | None, other: str | None) -> str:
    """The part of a line where the other differs."""
    if line is None:
        return "no such line"
    pairs = zip(line, other or "", strict=False)
    same = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(line), len(other or "")))
    start = max(0, same - BEFORE) if len(line) > SHOWN else 0
    return repr(line[start : start + SHOWN])
