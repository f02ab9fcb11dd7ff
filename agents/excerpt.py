"""Text made fit for a prompt: cut to a number of tokens, without machine paths and colours."""

import re

from agents.price import BYTES_PER_TOKEN
from agents.redaction import redact

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+(?=[\w.+@-])")
_RUN = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


def cap(text: str, tokens: float) -> str:
    r"""`text` when it has at most that many tokens, else its two ends and how much was cut.

    >>> cap("a" * 100, 10)
    'aaaaaaaaaaaaaaaaa\n[65 bytes cut]\naaaaaaaaaaaaaaaaaa'
    """
    room = int(tokens * BYTES_PER_TOKEN)
    raw = text.encode(errors="replace")
    if len(raw) <= room:
        return text
    head, tail = raw[: room // 2], raw[len(raw) - (room - room // 2) :]
    ends = (head.decode(errors="ignore"), tail.decode(errors="ignore"))
    return f"{ends[0]}\n[{len(raw) - room} bytes cut]\n{ends[1]}"


def head(text: str, tokens: float) -> str:
    r"""The first lines of `text`, whole ones, as many as that many tokens hold.

    >>> head("ab\ncd\nef", 2)
    'ab\ncd'
    """
    room = int(tokens * BYTES_PER_TOKEN)
    kept: list[str] = []
    for line in text.splitlines():
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(kept)


def estimate(text: str) -> int:
    """About how many tokens `text` has."""
    return round(len(text.encode(errors="replace")) / BYTES_PER_TOKEN)


def clean(text: str) -> str:
    """`text` without colours, secrets and the folders of absolute paths.

    >>> clean("/tmp/kf/k.cpp:3: error")
    'k.cpp:3: error'
    """
    return redact(_PATH.sub("", _ANSI.sub("", text)))


def fenced(text: str, language: str = "") -> str:
    """`text` as a block whose fence is longer than any inside."""
    longest = max((len(run) for run in _RUN.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def brief_number(value: float) -> str:
    """Four significant digits or a whole number: enough to cite within 1 %.

    >>> brief_number(0.123456), brief_number(65536.4)
    ('0.1235', '65536')
    """
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.4g}"
