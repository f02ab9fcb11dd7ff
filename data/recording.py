"""What two agents said in a campaign, in one file that can be read, compared and replayed.

JSON, an item a line. A long text stands once, under its hash, as a list of its lines, so that a
changed prompt or reply is a changed line in a diff.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from data import codec
from data.errors import MisuseError
from data.memory import Memory
from data.records import Contract, Iteration, LlmCall, Settings, digest
from data.rows import CallKey

FORMAT = "kforge_recording"
VERSION = 1
LONG = 100
"""Characters from which a text is kept by hash; shorter ones are read better where they stand."""
_TEXT = "$text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A reply and the place where it was asked for."""

    key: CallKey
    call: LlmCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A campaign as its agents saw it."""

    run_id: str
    epoch: str
    contract: Contract
    settings: Settings
    memory: Memory
    roles: tuple[str, ...]
    """That a model or a command played; the others were the offline agents'."""
    rows: tuple[Iteration, ...]
    """All steps, without their calls and raw samples."""
    said: tuple[Said, ...] = field(default_factory=tuple)
    """In order for each place."""

    @property
    def models(self) -> tuple[str, ...]:
        """Who answered."""
        return tuple(sorted({s.call.model for s in self.said}))


def bare(row: Iteration) -> Iteration:
    """The row without what the recording has elsewhere or nobody is shown."""
    if row.run is None:
        return replace(row, calls=())
    timings = tuple(replace(t, samples_us=()) for t in row.run.timings)
    return replace(row, calls=(), run=replace(row.run, timings=timings))


def written(recording: Recording) -> str:
    """The file's text; the same recording is the same text."""
    content = codec.encode(recording)
    for said in content["said"]:
        said["call"]["prompt"] = json.loads(said["call"]["prompt"])
    texts: dict[str, list[str]] = {}
    short = _shortened(content, texts)
    whole = {FORMAT: VERSION, **short, "texts": dict(sorted(texts.items()))}
    return json.dumps(whole, indent=1) + "\n"


def read(path: Path) -> Recording:
    """The recording in a file; MisuseError when it is none or of another version."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content[FORMAT]
    except OSError as error:
        raise MisuseError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise MisuseError(
            f"{path} is no recording; kforge ledger record RUN_ID OUT.json makes one"
        ) from None
    if version != VERSION:
        raise MisuseError(f"{path} is a recording of version {version!r}; expected {VERSION}")
    try:
        whole = _whole(content, content.pop("texts"))
        for said in whole["said"]:
            said["call"]["prompt"] = json.dumps(said["call"]["prompt"], ensure_ascii=False)
        found: Recording = codec.decode(Recording, whole)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MisuseError(f"{path} is a broken recording: {type(error).__name__} {error}") from None
    return found


def _shortened(value: Any, texts: dict[str, list[str]]) -> Any:
    """`value` with its long texts by hash."""
    match value:
        case dict():
            return {name: _shortened(v, texts) for name, v in value.items()}
        case list():
            return [_shortened(v, texts) for v in value]
        case str() if len(value) >= LONG:
            key = digest(value)
            texts[key] = value.split("\n")
            return {_TEXT: key}
    return value


def _whole(value: Any, texts: dict[str, list[str]]) -> Any:
    """The inverse of `_shortened`; KeyError when a text is lost."""
    match value:
        case {"$text": key}:
            return "\n".join(texts[key])
        case dict():
            return {name: _whole(v, texts) for name, v in value.items()}
        case list():
            return [_whole(v, texts) for v in value]
    return value
