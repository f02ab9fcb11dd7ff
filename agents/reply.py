"""From a model's answer to a source file, by rules that name every way to fail.

Nothing is executed and nothing is repaired: an answer is taken as it is or sent back. Each rule
exists because known extractors fail without it (docs/agents.md lists the cases).
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from agents.elision import elided
from agents.fences import Block, blocks, parses

LARGEST_BYTES = 64 * 1024
"""Of a candidate's source; the longest published kernels stay below 20 kB."""
LONGEST_ANSWER = 512 * 1024
"""Characters: with thought and prose, far above what any room for tokens allows."""
_THOUGHT = re.compile(r"^[ \t]*<(think|thinking|reasoning|analysis)>", re.MULTILINE)
_CLOSED_ONLY = re.compile(
    r"\A.*^[ \t]*</(?:think|thinking|reasoning)>[ \t]*$", re.DOTALL | re.MULTILINE
)
_MODEL = re.compile(r"^(?:class[ \t]+ModelNew\b|ModelNew[ \t]*=)", re.MULTILINE)
_METADATA = re.compile(r"^[ \t]*# kforge:[ \t]*(\{.*\})[ \t]*$", re.MULTILINE)
_NESTED = re.compile(r"^[ \t]*(?:`{3,}|~{3,})\w", re.MULTILINE)
"""Another block begins: where the text is no Python, the first one has never ended."""
_REFUSAL = re.compile(
    r"\A\W*(?:i.?m sorry|sorry,|i apologi[sz]e|i (?:can.?t|cannot|am unable to|won.?t)\b)",
    re.IGNORECASE,
)
_NOT_CODE = frozenset({"shell", "text", "json", "diff"})


class ParseStatus(StrEnum):
    """What an answer turned out to be; all but `OK` are faults of form, not of the kernel."""

    OK = "ok"
    NULL = "null"
    """The provider sent no text at all."""
    EMPTY = "empty"
    REFUSED = "refused"
    UNCLOSED_THOUGHT = "unclosed_thought"
    """Reasoning that never ended: there is no answer after it."""
    NO_CODE = "no_code"
    NO_MODEL = "no_model"
    """Code, but nothing that defines `ModelNew`."""
    AMBIGUOUS = "ambiguous"
    """Several different blocks define `ModelNew`."""
    TRUNCATED = "truncated"
    ELIDED = "elided"
    """Parts are left out ("rest unchanged")."""
    TOO_LARGE = "too_large"
    INVALID_TEXT = "invalid_text"
    """NUL characters or broken UTF-8."""
    BAD_JSON = "bad_json"
    """The analyst's answer is not the object that was asked for."""
    CONTRADICTED = "contradicted"
    """The analyst's answer does not agree with the metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A parsed answer: a whole source file, or why there is none."""

    status: ParseStatus
    source: str = ""
    """Empty unless the status is `OK`."""
    techniques: tuple[str, ...] = ()
    """As declared in the metadata line; not checked against the vocabulary."""
    note: str = ""


def parse(text: str | None, finish_reason: str | None) -> Answer:
    """The `ModelNew` module in a generator's answer."""
    if (status := _silence(text, finish_reason)) is not None or text is None:
        return Answer(status=status or ParseStatus.NULL)
    spoken = without_thought(text)
    if spoken is None:
        return Answer(status=ParseStatus.UNCLOSED_THOUGHT)
    found = blocks(spoken)
    chosen = _choose(found, finish_reason) if found else _unfenced(spoken, finish_reason)
    if isinstance(chosen, ParseStatus):
        return Answer(status=chosen)
    return _checked(chosen.removeprefix("\ufeff"), spoken)


def _silence(text: str | None, finish_reason: str | None) -> ParseStatus | None:
    if finish_reason == "content_filter":
        return ParseStatus.REFUSED
    if text is None:
        return ParseStatus.NULL
    if not text.strip():
        return ParseStatus.EMPTY
    if len(text) > LONGEST_ANSWER:
        return ParseStatus.TOO_LARGE
    if "\0" in text or not _encodable(text):
        return ParseStatus.INVALID_TEXT
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def without_thought(text: str) -> str | None:
    """`text` without reasoning, newlines and byte-order mark normalised; None if it never ends.

    >>> without_thought("<think>draft</think>answer")
    'answer'
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    kept, at = [], 0
    while opening := _THOUGHT.search(plain, at):
        end = f"</{opening[1]}>"
        closing = plain.find(end, opening.end())
        if closing < 0:
            return None
        kept.append(plain[at : opening.start()])
        at = closing + len(end)
    spoken = "".join([*kept, plain[at:]])
    return _CLOSED_ONLY.sub("", spoken)  # some chat templates put the opening tag in the prompt


def _choose(found: list[Block], finish_reason: str | None) -> str | ParseStatus:
    """The source of the best block, or the class of the failure."""
    models = [b for b in found if _is_model(b)]
    if len({b.text.strip() for b in models}) > 1:
        whole = all(b.closed for b in models)
        return ParseStatus.AMBIGUOUS if whole else ParseStatus.TRUNCATED
    best = max(enumerate(found), key=lambda pair: (_score(pair[1]), len(pair[1].text), pair[0]))[1]
    if not best.closed and not (finish_reason == "stop" and parses(best.text)):
        return ParseStatus.TRUNCATED
    if not _is_model(best):
        return ParseStatus.NO_MODEL
    return best.text


def _is_model(block: Block) -> bool:
    return block.language not in _NOT_CODE and defines_model(block.text)


def _score(block: Block) -> int:
    worth = 100 * defines_model(block.text) + 10 * (block.language in ("python", ""))
    return worth - 50 * (block.language in _NOT_CODE)


def _unfenced(text: str, finish_reason: str | None) -> str | ParseStatus:
    """The whole text when it is Python and defines `ModelNew`; prose is never taken as code."""
    if parses(text) and defines_model(text):
        return text
    if finish_reason == "length":
        return ParseStatus.TRUNCATED
    return ParseStatus.REFUSED if _REFUSAL.match(text) else ParseStatus.NO_CODE


def defines_model(source: str) -> bool:
    """Whether the module has a `ModelNew`; for one that does not parse, whether a line says so."""
    return _MODEL.search(source) is not None


def _checked(source: str, spoken: str) -> Answer:
    if len(source.encode()) > LARGEST_BYTES:
        return Answer(status=ParseStatus.TOO_LARGE)
    if elided(source):
        return Answer(status=ParseStatus.ELIDED)
    if _NESTED.search(source) and not parses(source):
        return Answer(status=ParseStatus.AMBIGUOUS)
    metadata = _metadata(spoken)
    tags = metadata.get("techniques")
    return Answer(
        status=ParseStatus.OK,
        source=source,
        techniques=tuple(str(t) for t in tags) if isinstance(tags, list) else (),
        note=str(metadata.get("note", ""))[:200],
    )


def _metadata(text: str) -> dict[str, object]:
    """The optional `# kforge: {...}` line; anything unreadable counts as absent."""
    for match in _METADATA.finditer(text):
        try:
            found = json.loads(match.group(1))
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, dict) else {}
    return {}


def json_object(text: str | None, finish_reason: str | None) -> str | ParseStatus:
    """The JSON object in an analyst's answer as text, or the class of the failure."""
    if (status := _silence(text, finish_reason)) is not None or text is None:
        return status or ParseStatus.NULL
    spoken = without_thought(text)
    if spoken is None:
        return ParseStatus.UNCLOSED_THOUGHT
    start, end = spoken.find("{"), spoken.rfind("}")
    if start >= 0 and end > start:
        return spoken[start : end + 1]
    if finish_reason == "length":
        return ParseStatus.TRUNCATED
    return ParseStatus.REFUSED if _REFUSAL.match(spoken) else ParseStatus.BAD_JSON
