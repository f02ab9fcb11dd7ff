"""Environments taken out of what foreign code says: an exception may hold all of its own.

A child has an allow-list and no secret; its paths still tell who runs the judge, and where.
"""

import os
import re

SHORTEST = 12
"""Shorter values are words of ordinary text, such as `kforge` or `/tmp`."""
PAIR = re.compile(
    r"(?:\b|(?<=\\x00))(_?[A-Z][A-Z0-9_]{2,})"
    r"((?:\\?['\"])?(?:=|: |, )(?:b?\\?['\"])?)(?!\d+\b)([^'\",;}\\\s]+)"
)
"""A name as environments have it, what stands between, and a value that is no number: as in
a dict, a list or a block."""
FEW = 3
"""So many pairs are a printed environment; fewer may be a sentence with capital letters."""


def scrub(text: str) -> str:
    """The text without values of our environment, and without any printed environment.

    >>> scrub("ValueError: {'LANG': 'C.UTF-8', 'HOME': '/tmp', 'USER': 'me'}")
    "ValueError: {'LANG': '...', 'HOME': '...', 'USER': '...'}"
    >>> scrub("RuntimeError: BLOCK_M=128, BLOCK_N=64, BLOCK_K=8: SHAPE=large is no shape")
    'RuntimeError: BLOCK_M=128, BLOCK_N=64, BLOCK_K=8: SHAPE=large is no shape'
    """
    known = [(value, name) for name, value in os.environ.items() if len(value) >= SHORTEST]
    for value, name in sorted(known, key=lambda pair: -len(pair[0])):
        text = text.replace(value, f"${name}")
    if len(PAIR.findall(text)) < FEW:
        return text
    return PAIR.sub(r"\1\2...", text)
