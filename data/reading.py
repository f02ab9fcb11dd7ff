"""One Parquet file of the ledger, read whole or by column; what is none is set aside."""

import logging
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import LedgerError
from data.schema import Table

VOLUME = "volume-"
"""Prefix of the files that hold many pairs of a run (`data/volumes.py`)."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file and its rows, with all columns of its table."""

    path: Path
    rows: pa.Table
    known: bool
    """False when a newer version wrote columns that this one does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The place of a pair below each table's folder, and what its rows say."""

    folder: str
    operator_hash: str
    device: str


def opens(root: Path, table: Table, path: Path) -> bool:
    """Whether a file says that it holds rows of the table; one that does not is set aside."""
    try:
        _require(table, set(pq.read_schema(path).names))
    except FileNotFoundError:
        return False
    except (pa.ArrowException, OSError, ValueError) as error:
        put_aside(root, path, error)
        return False
    return True


def read(
    root: Path, table: Table, path: Path, schema: pa.Schema, pair: Pair | None
) -> Loaded | None:
    """The file's rows; None when it has vanished or is no file of this table."""
    try:
        volume = pair is not None and path.name.startswith(VOLUME)
        content = pa.memory_map(str(path)) if volume else pa.BufferReader(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refusal(root, error) from error
    try:
        return parsed(table, path, content, schema, pair if volume else None)
    except (pa.ArrowException, OSError, ValueError) as error:
        put_aside(root, path, error)
        return None


def parsed(
    table: Table, path: Path, content: pa.NativeFile, schema: pa.Schema, pair: Pair | None
) -> Loaded:
    """The rows with exactly the columns of `schema`; ValueError or ArrowException otherwise."""
    file = pq.ParquetFile(content, page_checksum_verification=True)
    names = set(file.schema_arrow.names)
    _require(table, names)
    present = [n for n in schema.names if n in names]
    if pair is None:
        rows = file.read(columns=present, use_threads=False)
    else:
        mine = [("operator_hash", "=", pair.operator_hash), ("device", "=", pair.device)]
        rows = pq.read_table(
            content,
            columns=present,
            filters=mine,
            use_threads=False,
            page_checksum_verification=True,
        )
    for name in schema.names:
        if name not in names:
            field = schema.field(name)
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    if not rows.schema.equals(schema):
        rows = rows.select(schema.names).cast(schema)
    return Loaded(path, rows, names <= {c.name for c in table.columns})


def _require(table: Table, names: set[str]) -> None:
    """ValueError when columns that tell the table from others are missing."""
    if lacking := {*table.key, *table.marks} - names:
        raise ValueError(f"it has no column {', '.join(sorted(lacking))}")


def put_aside(root: Path, path: Path, found: Exception) -> None:
    """Moves a file that cannot be read out of the readers' way; where it cannot, it is skipped."""
    why = str(found).partition("\n")[0]
    place = root / "set-aside" / path.relative_to(root)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)
    except FileNotFoundError:
        return
    except OSError as error:
        _log.warning(
            "skipped %s, which is no file of the ledger (%s): %s", path, why, error.strerror
        )
    else:
        _log.warning("set aside %s: %s", place, why)


def refusal(root: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"cannot read the ledger in {root}: {error.strerror or error}; "
        "make it a readable folder or choose another --runs"
    )
