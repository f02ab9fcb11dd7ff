"""Long texts of compacted rows, each stored once: sources, prompts, replies, logs.

RUNS/texts/volume-HASH.parquet

In a volume (`data/volumes.py`) a long text stands as its id, in its column and in `record`; the raw
samples of a record are those of its `timings`. What cannot be given back to the byte stays whole.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from data.reading import VOLUME, opens, put_aside
from data.records import digest
from data.schema import TEXTS, VERSION, Table

LONG = 200
"""Characters from which a text of a record goes to `texts`: a reference takes 29."""
GROUP_ROWS = 2000
"""Texts that are read for one at least: 4 MB."""
MARK = '{"$packed": 1, '
"""How a record begins that refers to texts; others are whole."""

_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(:?)')
_TEXT = re.compile(r'\{"\$text": "([0-9a-f]{16})"\}')
_TIMED = re.compile(
    r'("shape": ("[^"\\]*(?:\\.[^"\\]*)*"), "baseline": .*?"samples_us": )\[[^\]]+\]', re.DOTALL
)
_SAMPLES = re.compile(r'\{"\$samples": ("[^"\\]*(?:\\.[^"\\]*)*")\}')

Samples = Mapping[str, Sequence[float]]
"""Raw times of an iteration by shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Rows that refer to texts, and the texts by id."""

    rows: pa.Table
    texts: dict[str, str]


def packed(table: Table, rows: pa.Table, samples: Mapping[str, Samples]) -> Packed:
    """The rows with their long texts by reference; `samples` are by `iteration_id`."""
    texts: dict[str, str] = {}
    for column, place in table.texts:
        ids = [_kept(value, texts) for value in rows.column(column).to_pylist()]
        rows = _with(rows, place, ids)
        rows = _with(rows, column, [None] * len(ids))
    keys = rows.column(table.key[0]).to_pylist()
    records = zip(keys, rows.column("record").to_pylist(), strict=True)
    short = [_short(record, samples.get(key, {}), texts) for key, record in records]
    return Packed(rows=_with(rows, "record", short), texts=texts)


def whole(record: str, texts: Mapping[str, str], samples: Samples) -> str:
    """The record as it was before it was packed; KeyError when a text of it is lost.

    Raw samples that are lost are none: the other figures of a timing stand in the record.
    """
    if not record.startswith(MARK):
        return record
    plain = _TEXT.sub(lambda m: json.dumps(texts[m[1]]), "{" + record.removeprefix(MARK))
    return _SAMPLES.sub(lambda m: json.dumps(list(samples.get(json.loads(m[1]), ()))), plain)


def needed(records: Iterable[str]) -> set[str]:
    """The ids of the texts that packed records refer to."""
    return {found for r in records if r.startswith(MARK) for found in _TEXT.findall(r)}


def referred(table: Table, rows: pa.Table) -> set[str]:
    """The ids of the texts that rows of a table lack and refer to."""
    found = needed(rows.column("record").to_pylist()) if table.texts else set()
    for column, place in table.texts:
        apart = rows.filter(rows.column(column).is_null()).column(place)
        found |= set(apart.drop_null().to_pylist())
    return found


def sampled(record: str) -> bool:
    """Whether samples of a packed record lie in its timings."""
    return record.startswith(MARK) and _SAMPLES.search(record) is not None


def table_of(texts: Mapping[str, str]) -> pa.Table:
    """Rows of `texts`."""
    columns = [list(texts), [VERSION] * len(texts), list(texts.values())]
    return pa.table(columns, schema=TEXTS.schema)


def volumes(root: Path) -> list[Path]:
    """The files that hold texts; what is none is set aside."""
    found = sorted((root / TEXTS.name).glob(f"{VOLUME}*.parquet"))
    return [path for path in found if opens(root, TEXTS, path)]


def ids(root: Path) -> set[str]:
    """The ids of all texts on record."""
    held: set[str] = set()
    for path in volumes(root):
        held |= set(pq.read_table(path, columns=["text_id"]).column(0).to_pylist())
    return held


def find(root: Path, wanted: set[str]) -> dict[str, str]:
    """The texts of these ids; those that nobody has are left out."""
    found: dict[str, str] = {}
    for path in volumes(root) if wanted else ():
        try:
            found |= _found(path, wanted - set(found))
        except FileNotFoundError:
            continue
        except (pa.ArrowException, OSError) as error:
            put_aside(root, path, error)
    return found


def _found(path: Path, wanted: set[str]) -> dict[str, str]:
    """Reads all ids, and the texts of the row groups that have one: a pair's lie side by side."""
    found: dict[str, str] = {}
    file = pq.ParquetFile(path, memory_map=True, page_checksum_verification=True)
    for group in range(file.num_row_groups if wanted else 0):
        ids = file.read_row_group(group, ["text_id"]).column(0).to_pylist()
        if here := [n for n, key in enumerate(ids) if key in wanted]:
            held = file.read_row_group(group, ["text"]).column(0).take(here).to_pylist()
            found |= dict(zip((ids[n] for n in here), held, strict=True))
    return found


def _kept(text: str | None, texts: dict[str, str]) -> str | None:
    """The id under which a text is kept now."""
    if text is None:
        return None
    key = digest(text)
    texts[key] = text
    return key


def _short(record: str, samples: Samples, texts: dict[str, str]) -> str:
    """The record by reference; whole where that would not give it back to the byte."""
    mine: dict[str, str] = {}
    if _TEXT.search(record):
        return record
    short = _STRING.sub(lambda m: _reference(m, mine), MARK + record[1:])
    if samples:
        short = _TIMED.sub(r'\1{"$samples": \2}', short)
    if whole(short, mine, samples) != record:
        return record
    texts |= mine
    return short


def _reference(match: re.Match[str], texts: dict[str, str]) -> str:
    """What stands for a JSON string: itself when it is short, a key or nothing that UTF-8 holds."""
    if len(match[1]) < LONG or match[2]:
        return match[0]
    text = json.loads(match[0])
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate in a model's reply
        return match[0]
    return json.dumps({"$text": _kept(text, texts)})


def _with(rows: pa.Table, name: str, values: Sequence[str | None]) -> pa.Table:
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, rows.schema.field(at), [pa.array(values, pa.string())])
