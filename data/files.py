"""Parquet files that appear whole or not at all, and folders of them that are read as one table.

A file is written under `.tmp/`, flushed to the disk and renamed into its folder. Names come from
the content, so that a name never stands for other rows than those that were read under it: what
compaction removes is always what it has rewritten. Readers drop doubles by the table's key.
"""

import errno
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from data import mirror
from data.errors import LedgerError
from data.reading import VOLUME, Loaded, Pair, read, refusal
from data.records import digest
from data.rows import Row
from data.schema import Table

MERGED = "pair-"
"""Prefix of the files that compaction of a pair writes."""
ROW_BYTES = 65536
"""More than a common row with its timings takes (6 kB and the source)."""
FEW = 16
"""Rows up to which a plain file is the smaller one: 9 kB against 15 at one iteration."""
LEVEL = 6
"""Of zstd."""
ALONE = frozenset(
    {"iteration_id", "call_id", "text_id", "text", "record", "started_at", "ended_at"}
)
"""Columns without two equal values."""
STALE_S = 3600.0
"""A temporary file of this age belongs to a writer that was killed: a write takes milliseconds."""

_log = logging.getLogger(__name__)


def ensure_writable(root: Path) -> None:
    """Writes and removes a small file; LedgerError when that fails."""
    temporary = root / ".tmp" / f"{uuid.uuid4().hex}.probe"
    mirror.push(root, temporary, b"")
    mirror.drop(root, temporary)
    try:
        temporary.parent.mkdir(parents=True, exist_ok=True)
        _write_synced(temporary, bytes(ROW_BYTES))
        temporary.unlink()
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise unwritable(root, error) from error


def write_rows(root: Path, path: Path, table: Table, rows: list[Row]) -> None:
    """Puts `rows` at `path` in one rename; LedgerError when the disk does not take them."""
    put(root, path, packed(table, rows))


def packed(table: Table, rows: list[Row]) -> bytes:
    """A file of these rows."""
    return _bytes(pa.Table.from_pylist(rows, schema=table.schema), None)


def write(root: Path, path: Path, rows: pa.Table, group_rows: int | None = None) -> None:
    """Puts a table at `path` in one rename; LedgerError when the disk does not take it."""
    put(root, path, _bytes(rows, group_rows))


def put(root: Path, path: Path, content: bytes) -> None:
    """Puts a file at `path` in one rename; LedgerError when the disk does not take it."""
    put_all(root, {path: content})


def put_all(root: Path, contents: Mapping[Path, bytes]) -> None:
    """Puts files in place in this order, each in one rename; on return they outlast a power cut.

    LedgerError when the disk does not take them. Folders are flushed after the last rename: so the
    second of two finds its part of a journal written, and an append takes half the time.
    """
    temporaries = {path: root / ".tmp" / f"{uuid.uuid4().hex}.parquet" for path in contents}
    try:
        changed = _made(root / ".tmp")
        for path, content in contents.items():
            changed |= _made(path.parent) | {path.parent: None}
            _write_synced(temporaries[path], content)
        for path, content in contents.items():
            mirror.push(root, path, content)
        for path, temporary in temporaries.items():
            temporary.replace(path)
        for folder in changed:
            _sync_folder(folder)
    except OSError as error:
        for temporary in temporaries.values():
            with suppress(OSError):
                temporary.unlink()
        raise unwritable(root, error) from error


def _made(folder: Path) -> dict[Path, None]:
    """Makes a folder where it is missing; the folders that have a new entry now."""
    if folder.is_dir():
        return {}
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return dict.fromkeys(path.parent for path in missing)


def unwritable(root: Path, error: OSError) -> LedgerError:
    """The one line for a disk that does not take rows."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "free space" if full else "make it a writable folder"
    return LedgerError(
        f"cannot write the ledger in {root}: {error.strerror or error}; "
        f"{remedy} or choose another --runs"
    )


def read_folder(
    root: Path, table: Table, folder: str, columns: list[str] | None = None
) -> pa.Table:
    """All rows below `folder` of one table that are in no volume, doubles of its key dropped."""
    schema = table.schema if columns is None else _part(table, columns)
    return joined(table, load(root, table, folder, schema), schema)


def read_pair(root: Path, table: Table, pair: Pair, columns: list[str]) -> pa.Table:
    """The rows of one pair, from its own files and from the volumes of its run."""
    schema = _part(table, columns)
    return joined(table, load(root, table, pair.folder, schema, pair), schema)


def joined(table: Table, loaded: list[Loaded], schema: pa.Schema) -> pa.Table:
    """One table of all, doubles of the key dropped."""
    rows = pa.concat_tables([schema.empty_table(), *(f.rows for f in loaded)])
    return unique(table, rows.combine_chunks())


def load(
    root: Path, table: Table, folder: str, schema: pa.Schema, pair: Pair | None = None
) -> list[Loaded]:
    """Every file below `folder` that can be read; what is no file of this table is set aside.

    With a pair its rows in the volumes of the run come too; else no volume is read.

    A compaction may replace files while we look. So we list again until nothing has vanished and
    no merged file is new; one listing may miss both the old file and the merged one.
    """
    mirror.pull(root, root / table.name / folder)
    seen: dict[Path, Loaded | None] = {}
    first = True
    while True:
        here = _listing(root, root / table.name / folder)
        listed = [p for p in here if not p.name.startswith(VOLUME)]
        if pair is not None:
            listed += sorted((root / table.name / folder).parent.glob(f"{VOLUME}*.parquet"))
        fresh = [p for p in listed if p not in seen]
        seen |= {p: read(root, table, p, schema, pair) for p in fresh}
        moved = any(seen[p] is None or p.name.startswith((MERGED, VOLUME)) for p in fresh)
        if not fresh or not (first or moved):
            return [f for f in seen.values() if f is not None]
        first = False


def unique(table: Table, rows: pa.Table) -> pa.Table:
    """`rows` without those whose key came before."""
    keys = list(zip(*(rows.column(name).to_pylist() for name in table.key), strict=True))
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    return rows if len(first) == len(keys) else rows.take(sorted(first.values()))


def merge(root: Path, table: Table, folder: str) -> None:
    """Rewrites the files of a folder as one; safe against kill at any instant and when repeated.

    Files with columns of a newer version are left alone.
    """
    files = [f for f in load(root, table, folder, table.schema) if f.known]
    if len(files) < 2:
        return
    rows = unique(table, pa.concat_tables(f.rows for f in files))
    keys = (rows.column(name).to_pylist() for name in table.key)
    name = f"{MERGED}{digest(*map(str, sorted(zip(*keys, strict=True))))}.parquet"
    target = root / table.name / folder / name
    write(root, target, rows)
    remove(root, (f.path for f in files if f.path != target))


def sweep(root: Path) -> None:
    """Removes what killed writers left under `.tmp/`."""
    old = time.time() - STALE_S
    for path in (root / ".tmp").glob("*"):
        with suppress(OSError):
            if path.stat().st_mtime < old:
                path.unlink()


def remove(root: Path, paths: Iterable[Path]) -> None:
    """Removes files that others hold; LedgerError when the disk refuses."""
    try:
        for path in paths:
            mirror.drop(root, path)
            path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(root, error) from error


def _bytes(rows: pa.Table, group_rows: int | None) -> bytes:
    """Few rows are smaller and written in half the time without dictionaries and statistics."""
    many = rows.num_rows > FEW
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        row_group_size=group_rows,
        compression="zstd" if many else "snappy",
        compression_level=LEVEL if many else None,
        use_dictionary=_repeated(rows.schema) if many else False,
        use_byte_stream_split=_reals(rows.schema) if many else False,
        write_statistics=many,
        write_page_checksum=True,
        store_schema=False,
    )
    return bytes(sink.getvalue())


@cache
def _repeated(schema: pa.Schema) -> list[str]:
    """Columns whose values come again: neither numbers that were measured nor whole records."""
    return [name for name in _leaves(schema) if name not in {*_reals(schema), *ALONE}]


@cache
def _reals(schema: pa.Schema) -> list[str]:
    """Columns of 64-bit floats: their bytes of one weight lie together, and compress by a third."""
    return [name for name, kind in _leaves(schema).items() if kind == pa.float64()]


def _leaves(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The columns as Parquet knows them, a list by its elements."""
    return {
        f"{f.name}.list.element" if pa.types.is_list(f.type) else f.name: (
            f.type.value_type if pa.types.is_list(f.type) else f.type
        )
        for f in schema
    }


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Makes a rename last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _listing(root: Path, folder: Path) -> list[Path]:
    found: list[Path] = []
    for here, _, names in os.walk(folder, onerror=_unreadable(root)):
        found += (Path(here, name) for name in names if name.endswith(".parquet"))
    return sorted(found)


def _unreadable(root: Path) -> Callable[[OSError], None]:
    """What to do when a folder cannot be listed: a folder that is not there is empty."""

    def handle(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise refusal(root, error) from error

    return handle


def _part(table: Table, columns: list[str]) -> pa.Schema:
    whole = table.schema
    return pa.schema([whole.field(name) for name in columns])
