"""The pieces that stand before a kernel: only those that it uses."""

import re
from functools import cache
from importlib.resources import files

_PIECE = re.compile(r"^//@ (\w+):([^\n]*)\n", re.MULTILINE)
_FUNCTION = re.compile(r"(?:static inline|FN) [\w:<>]+ (\w+)\(")


def text(body: str, width: int) -> str:
    """C++ `body` behind the vector pieces whose functions it calls."""
    return chosen(body, "vector.hpp").replace("@WIDTH@", str(width))


def chosen(body: str, file: str) -> str:
    """`body` behind the pieces of the template file whose functions it calls."""
    known = pieces(file)
    owner = {f: name for name, (_, part) in known.items() for f in _FUNCTION.findall(part)}
    wanted = {"base"}
    stack = [owner[word] for word in re.findall(r"\b\w+\b", body) if word in owner]
    while stack:
        name = stack.pop()
        if name not in wanted:
            wanted.add(name)
            stack.extend(known[name][0])
    return "".join(part for name, (_, part) in known.items() if name in wanted) + body


@cache
def pieces(file: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """Names of the pieces it rests on, and text, by piece."""
    text = (files("agents.offline") / "templates" / file).read_text(encoding="utf-8")
    parts = _PIECE.split(text)[1:]
    return {
        name: (tuple(needs.split()), body)
        for name, needs, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }
