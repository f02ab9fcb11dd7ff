"""The files that are to be judged and what each is judged against, read before anything starts."""

import io
import json
import tokenize
from dataclasses import dataclass
from pathlib import Path

from data.errors import MisuseError
from data.operator import find
from data.records import Operator

LARGEST = 1 << 20
"""Bytes of a candidate: kernels have thousands, and each row of the ledger holds one whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A file and what it is judged against."""

    candidate: str
    """The path as it was given."""
    source: str
    operator: Operator
    fault: str = ""
    """Why the file cannot be a candidate; then it has no source."""


def subjects(
    candidates: tuple[str, ...], operator: str | None, pairs: Path | None
) -> tuple[Subject, ...]:
    """The files with their operators, all read before anything is judged; MisuseError if amiss."""
    if pairs is not None:
        if candidates or operator:
            raise MisuseError("--pairs stands alone: give no CANDIDATE and no --operator with it")
        named = _pairs(pairs)
    elif not candidates:
        raise MisuseError("no candidate is given; name CANDIDATE.py files or --pairs FILE.jsonl")
    elif operator is None:
        raise MisuseError("--operator FILE_OR_NAME says what the candidates are judged against")
    else:
        named = [(c, operator) for c in candidates]
    operators = {name: _operator(name) for name in dict.fromkeys(o for _, o in named)}
    return tuple(_subject(c, operators[o]) for c, o in named)


def _operator(name: str) -> Operator:
    (found,) = find((name,), None)
    return found


def _pairs(path: Path) -> list[tuple[str, str]]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"--pairs {path} cannot be read: {error}") from None
    named = [_pair(path, n, line) for n, line in enumerate(lines, 1) if line.strip()]
    if not named:
        raise MisuseError(f"--pairs {path} is empty; expected {{candidate, operator}} a line")
    return named


def _pair(path: Path, number: int, line: str) -> tuple[str, str]:
    try:
        value = json.loads(line)
        candidate, operator = value["candidate"], value["operator"]
    except (ValueError, KeyError, TypeError):
        candidate = operator = None
    if not isinstance(candidate, str) or not isinstance(operator, str):
        raise MisuseError(
            f'{path}:{number} is no pair; expected {{"candidate": "FILE", "operator": "NAME"}}'
        )
    return candidate, operator


def _subject(name: str, operator: Operator) -> Subject:
    """The candidate with its text, or with what keeps it from being Python."""
    data = _bytes(Path(name))
    fault = _fault(data)
    source = "" if fault else _text(data)
    return Subject(candidate=name, source=source, operator=operator, fault=fault)


def _bytes(path: Path) -> bytes:
    """At most one more than LARGEST, whatever the file holds or produces."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise MisuseError(
            f"candidate {path} cannot be read: {said}; give a readable Python file"
        ) from None


def _fault(data: bytes) -> str:
    """What keeps the bytes from being Python source, in a sentence; empty when nothing does."""
    if len(data) > LARGEST:
        return f"the file is larger than {LARGEST >> 20} MiB, the most that a candidate may have"
    if b"\0" in data:
        return f"the file is binary: byte {data.index(0)} is NUL; expected Python source"
    try:
        _text(data)
    except (SyntaxError, UnicodeDecodeError) as error:
        return f"the file is not text: {error}; expected Python source, UTF-8 unless it says other"
    return ""


def _text(data: bytes) -> str:
    """As Python reads source: its coding cookie honoured, a byte order mark dropped."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding).replace("\r\n", "\n")
