"""The messages of compilers as values.

g++ and clang print `file:line:column: severity: message`, nvcc and NVRTC `file(line): severity:
message`, ptxas `ptxas error : message`.
The candidate's source is compiled under a plain file name in a folder of its own, so a path with a
slash is never the candidate's. What a compiler quotes from such a file is dropped: a source could
`#include` anything readable to have it printed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from data.records import Diagnostic

KEPT = 12
"""Messages that a generator is shown at most; the later ones mostly follow from the first."""

_SYSTEM = re.compile(r"^/(?:usr|opt|Library|Applications)/(?:.*/)?(?:include|lib\w*)/")
_MESSAGE = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? "
    r"(?P<severity>fatal error|error|warning|note): (?P<text>.*)$"
)
_EDG = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): "
    r"(?P<severity>catastrophic error|error|warning|remark)(?: #[\w-]+)?: (?P<text>.*)$"
)
"""The front end of nvcc and NVRTC."""
_ASSEMBLER = re.compile(
    r"^(?:ptxas|nvlink|nvrtc)[^:\n]*?(?:; +)?(?P<severity>fatal|error|warning) *: (?P<text>.*)$"
)
"""ptxas names no line of the source."""
_CHAIN = re.compile(
    r"^(?:In file included from| +from) (?P<file>[^:\n]+):(?P<line>\d+)(?::\d+)?[:,]"
)
_REQUIRED = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)?"
    r"(?:   (?:required|recursively required)| note: in instantiation of)"
)
_QUOTE = re.compile(r"^ *(?P<line>\d*) \|(?P<text>.*)$")
_CARET = re.compile(r"^ *~*\^[~^ ]*$")
_LINKER = re.compile(
    r"^(?:/\S*/)?(?P<file>[\w.]+):\(\.[^)]*\): (?P<text>undefined reference to .*)$"
)
_CONTEXT = re.compile(r"^(?:\S+: (?:In |At )|\S+:\d+:\d+:   )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One message with the lines that belong to it."""

    file: str
    line: int | None
    severity: str
    text: str
    lines: tuple[str, ...]
    """As printed: include chain, message, quoted source, caret."""
    anchor: int | None = None
    """Line of the candidate's own file from which the compiler came here."""

    @property
    def own(self) -> bool:
        return "/" not in self.file

    @property
    def system(self) -> bool:
        return _SYSTEM.match(self.file) is not None and ".." not in self.file


def blocks(text: str) -> Iterator[Block]:
    """The compiler's output cut into messages; what comes before the first one goes with it."""
    current: Block | None = None
    before: tuple[str, ...] = ()
    anchor: int | None = None
    for line in text.splitlines():
        if (origin := _CHAIN.match(line) or _REQUIRED.match(line)) is not None:
            anchor = int(origin["line"]) if "/" not in origin["file"] else anchor
        started = _start(line)
        if started is not None:
            if current is not None:
                yield current
            current = replace(started, lines=(*before, line), anchor=anchor)
            before, anchor = (), None
        elif origin is not None or _CONTEXT.match(line):
            before = (*before, line)
        elif current is not None:
            current = replace(current, lines=(*current.lines, line))
    if current is not None:
        yield current


def parse(text: str, file: str = "kernel.cpp") -> tuple[Diagnostic, ...]:
    """Distinct messages, errors first; at most `KEPT`. `file` is the candidate's own.

    >>> parse("kernel.cpp:7:20: error: 'i' was not declared in this scope")[0].message
    "'i' was not declared in this scope"
    """
    found = [d for b in blocks(text) if (d := _diagnostic(b, file)) is not None]
    order = {"error": 0, "warning": 1, "note": 2}
    unique = {(d.line, d.message): d for d in found}
    return tuple(sorted(unique.values(), key=lambda d: order[d.severity])[:KEPT])


def readable(text: str) -> str:
    """The output without the messages about files that are neither ours nor the compiler's."""
    kept: list[str] = []
    for block in blocks(text):
        if block.own or block.system:
            kept += [line for line in block.lines if block.own or not _QUOTE.match(line)]
        else:
            kept.append(f"[message about {block.file} cut]")
    return "\n".join(kept)


def _start(line: str) -> Block | None:
    """The message that begins in this line."""
    if (match := _MESSAGE.match(line)) is not None:
        return _block(match["file"], int(match["line"]), match["severity"], match["text"])
    if (match := _EDG.match(line)) is not None:
        return _block(match["file"], int(match["line"]), match["severity"], match["text"])
    if (match := _LINKER.match(line)) is not None:
        return _block(match["file"], None, "error", match["text"])
    if (match := _ASSEMBLER.match(line)) is not None:
        return _block("", None, match["severity"], match["text"])
    return None


def _block(file: str, line: int | None, severity: str, text: str) -> Block:
    """A message; what a vendor calls fatal or catastrophic is an error, a remark is a note."""
    plain = "error" if "error" in severity or severity == "fatal" else severity
    plain = "note" if plain == "remark" else plain
    return Block(file=file, line=line, severity=plain, text=text, lines=())


def _diagnostic(block: Block, file: str) -> Diagnostic | None:
    """The message at a line of the candidate's own file; None for a note elsewhere."""
    if block.own:
        quoted = _quoted(block)
        return Diagnostic(
            file=block.file or file,
            line=block.line,
            severity=block.severity,
            message=block.text,
            source_line=quoted,
        )
    if block.severity != "error":
        return None
    inside = block.file.rsplit("/", 1)[1]
    message = (
        f"{block.text} (in <{inside}>, used here)" if block.system else "error in an included file"
    )
    return Diagnostic(file=file, line=block.anchor, severity="error", message=message)


def _quoted(block: Block) -> str:
    """The source line that the compiler printed under the message."""
    for line, below in zip(block.lines, (*block.lines[1:], ""), strict=True):
        quote = _QUOTE.match(line)
        if quote is not None and quote["line"] == str(block.line):
            return quote["text"].strip()
        if quote is None and _CARET.match(below):  # clang before 16 prints no line numbers
            return line.strip()
    return ""


def whole_lines(text: str) -> tuple[str, tuple[str, ...]]:
    """Without a last line that has no end: it may hold half a number. And a remark on that."""
    cut = () if text.endswith("\n") else ("the output is cut off: its last line is left out",)
    return text[: text.rfind("\n") + 1], cut


def opening(text: str) -> str:
    """How a text begins that is not what was expected, for a message of one line."""
    if not text.strip("\0 \r\n\t"):
        return "it is empty"
    words = " ".join(text.replace("\0", "").split())[:80]
    other = " (it looks like UTF-16: save it as UTF-8)" if "\0" in text else ""
    return f"it begins {words!r}{other}"
