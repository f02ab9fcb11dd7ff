"""Fenced code blocks in Markdown, line by line (CommonMark, section 4.5)."""

import ast
import re
import warnings
from dataclasses import dataclass
from itertools import islice

_FENCE = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<mark>`{3,}|~{3,})(?P<info>.*)$"
)
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\S")
TRIED_ENDS = 8
"""Closing fences tried when a block holds fences itself: parsing is linear in each."""
MOST = 200
"""Blocks read; an answer with more is no answer."""
_LANGUAGES = {
    "python": ("py", "python", "python3", "py3"),
    "cpp": ("c++", "cc", "cpp", "cxx", "c"),
    "cuda": ("cuda", "cu"),
    "hip": ("hip",),
    "sycl": ("sycl",),
    "metal": ("metal", "msl"),
    "opencl": ("opencl", "cl", "ocl"),
    "triton": ("triton",),
    "shell": ("sh", "bash", "shell", "zsh", "console", "shell-session"),
    "text": ("text", "txt", "plaintext", "output", "log"),
    "markdown": ("markdown", "md"),
    "json": ("json", "jsonc", "yaml", "toml"),
    "diff": ("diff", "patch"),
}
_ALIASES = {alias: name for name, aliases in _LANGUAGES.items() for alias in aliases}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block."""

    language: str
    """Canonical name; empty without a tag, the tag in lower case when it is unknown."""
    text: str
    closed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opening:
    indent: int
    mark: str
    language: str


def blocks(text: str) -> list[Block]:
    r"""All fenced blocks of `text` in order, those in a Markdown block too.

    Newlines must be normalised.

    >>> [(b.language, b.text, b.closed) for b in blocks("~~~ CU opt=1\nx\n~~~")]
    [('cuda', 'x\n', True)]
    """
    lines = text.split("\n")
    found: list[Block] = []
    at, in_list = 0, False
    while at < len(lines) and len(found) < MOST:
        opening = _opening(lines[at], in_list=in_list)
        in_list = in_list or bool(_LIST_ITEM.match(lines[at]))
        at += 1
        if opening:
            end = _end(lines, at, opening)
            body = "".join(_dedent(line, opening.indent) + "\n" for line in lines[at:end])
            block = Block(language=opening.language, text=body, closed=end < len(lines))
            found += blocks(body) if block.language == "markdown" else [block]
            at = end + 1
    return found


def _opening(line: str, *, in_list: bool) -> _Opening | None:
    match = _FENCE.match(line)
    if match is None or ("`" in match["info"] and match["mark"][0] == "`"):
        return None
    indent = len(match["indent"].expandtabs(4))
    if indent > 3 and not (in_list or match["indent"].strip()):
        return None
    return _Opening(indent=indent, mark=match["mark"], language=_language(match["info"]))


def _language(info: str) -> str:
    words = re.findall(r"[\w+#-]+", info.lower())
    return _ALIASES.get(words[0], words[0]) if words else ""


def _end(lines: list[str], start: int, opening: _Opening) -> int:
    """Index of the closing line, `len(lines)` if there is none.

    A docstring may hold fences of its own: the first end that leaves valid Python is taken, and
    the first end of all when none does.
    """
    closing = (i for i in range(start, len(lines)) if _closes(lines[i], opening))
    ends = list(islice(closing, TRIED_ENDS))
    if len(ends) > 1 and opening.language in ("python", "", "triton"):
        for end in ends:
            if parses("\n".join(_dedent(line, opening.indent) for line in lines[start:end])):
                return end
    return ends[0] if ends else len(lines)


def _closes(line: str, opening: _Opening) -> bool:
    bare = line.strip()
    indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    same = bool(bare) and set(bare) == {opening.mark[0]}
    return same and len(bare) >= len(opening.mark) and indent <= opening.indent + 3


def _dedent(line: str, indent: int) -> str:
    blank = len(line) - len(line.lstrip(" "))
    return line[min(blank, indent) :]


def parses(source: str) -> bool:
    """Whether `source` is Python; it is never executed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in kernel strings are no fault
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
