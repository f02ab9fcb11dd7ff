"""What lies in a spool: jobs that a controller asks for, and rows that come back.

Everything is plain data in a file of one line whose name holds a hash of its content, so that a
file which was cut or changed on its way shows. Stdlib only: this travels.
"""

import hashlib
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from data.codec import dumps, loads
from data.errors import MisuseError
from data.records import Device, Iteration, Pair

T = TypeVar("T")
HASH = 16
"""Hexadecimal digits of a content hash in a file's name."""


class Kind(StrEnum):
    """What a job wants."""

    PAIR = "pair"
    """The whole offline loop for an operator on a device; a row is an iteration."""
    JUDGE = "judge"
    """Answers of the judge on given candidates; a row is an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request to the judge server (`targets/remote/serve.py`)."""

    op: str
    """`admit`, `build` or `measure`."""
    args: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One thing to do on the machine that holds the device."""

    archive: str
    """Hash of the archive that must do it: another one would judge otherwise."""
    device: Device
    pair: Pair | None = None
    asks: tuple[Ask, ...] = ()
    """In order. What follows a refused operator, or measures what was not built, is left out."""
    subject: str = ""
    """For people: what it is about."""

    def __post_init__(self) -> None:
        if (self.pair is None) == (not self.asks):
            raise ValueError("a job holds a pair or requests")

    @property
    def kind(self) -> Kind:
        return Kind.PAIR if self.pair else Kind.JUDGE

    @property
    def id(self) -> str:
        """Name of its file without the ending, such as `pair-softmax-h200-0123456789abcdef`."""
        about = self.pair.operator.name if self.pair else self.subject
        words = (self.kind.value, about, self.device.name)
        readable = "-".join(re.sub(r"[^A-Za-z0-9_.]+", "_", word)[:40] for word in words)
        return f"{readable}-{digest(dumps(self))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One result: a finished step of a pair, or one answer of the judge."""

    job: str
    number: int
    """The step, or the place of the request, from 0."""
    archive: str
    iteration: Iteration | None = None
    answer: Any = None
    """Plain data; None where the request was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Says that a job is done and which rows belong to it."""

    job: str
    rows: tuple[str, ...] = field(default=())
    """Names of their files, in order."""


class Refused(MisuseError):  # noqa: N818 (what happened)
    """A file that is cut, changed or somebody else's; the message says which and why."""


def digest(text: str) -> str:
    """The part of a file's name that stands for its content."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH]


def sealed(stem: str, value: object) -> tuple[str, str]:
    """Name and text of a result file."""
    text = dumps(value)
    return f"{stem}-{digest(text)}.jsonl", f"{text}\n"


def opened(kind: type[T], name: str, content: bytes) -> T:
    """The value in a file of that name; Refused when name and content do not agree."""
    try:
        text = content.decode("utf-8", "surrogatepass").removesuffix("\n")
    except UnicodeDecodeError:
        raise Refused(f"{name} is no text: it was damaged on its way; send it again") from None
    if digest(text) != name.rpartition(".")[0].rpartition("-")[2]:
        raise Refused(f"{name} is cut or changed: its content is not what its name says")
    try:
        return loads(kind, text)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise Refused(f"{name} is no {kind.__name__.lower()} of a spool: {error}") from None
