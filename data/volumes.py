"""Volumes: Parquet files that hold many pairs of a run, read in place and column by column.

RUNS/iterations/RUN/volume-HASH.parquet    beside the folders of the run's pairs
RUNS/texts/volume-HASH.parquet             long texts of all runs, each once (`data/texts.py`)

A ledger of many pairs has a file for each; gathered into volumes it is answered from in a second.
A volume is there before the files that it was made of go; whoever sees both drops the doubles.
Texts are there before the rows that refer to them.
"""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from data import files, texts
from data.errors import MisuseError
from data.mirror import remote
from data.reading import VOLUME, Loaded, opens, put_aside, read
from data.records import digest
from data.schema import ITERATIONS, LLM_CALLS, TABLES, TEXTS, TIMINGS, Table

ROWS, BYTES = 100_000, 200_000_000
"""Rows and bytes that go into one volume: about 1 GB of memory while it is made."""
GROUP_ROWS = 10_000
"""Rows that are read for one pair at least: their operator and device are in the statistics."""
ORDER = [(name, "ascending") for name in ("operator_hash", "device", "lineage", "step")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a compaction did."""

    rows: int
    files: int
    """Files that went into volumes."""


def gather(root: Path) -> Gathered:
    """Puts the files of all pairs into volumes; safe against kill at any instant and when repeated.

    Others may append and read meanwhile. MisuseError on S3, where nothing holds two machines apart.
    """
    if remote(root):
        raise MisuseError("a ledger on S3 is compacted pair by pair, as campaigns end")
    rows = count = 0
    with _alone(root):
        kept = texts.ids(root)
        # Timings last: the samples of an iteration that is packed lie in its loose timings.
        for table in (ITERATIONS, LLM_CALLS, TIMINGS):
            for run in sorted(p for p in (root / table.name).glob("*") if p.is_dir()):
                for batch in _batches(root, table, run):
                    rows += _gathered(root, table, run, batch, kept)
                    count += len(batch)
    files.sweep(root)
    return Gathered(rows=rows, files=count)


def readable(root: Path, table: Table) -> list[Path]:
    """The volumes of a table; those that are none are set aside."""
    found = sorted((root / table.name).rglob(f"{VOLUME}*.parquet"))
    return [path for path in found if opens(root, table, path)]


def damaged(root: Path) -> bool:
    """Whether a volume had to be set aside: reads all of them to the last page, in two ways."""
    found = [(table, path) for table in TABLES.values() for path in readable(root, table)]
    broken = [path for table, path in found if not intact(root, table, path)]
    return bool(broken)


def intact(root: Path, table: Table, path: Path) -> bool:
    """Whether a file can be read; else it is set aside.

    Arrow verifies the checksums of pages, DuckDB is stricter about the footer.
    """
    if read(root, table, path, table.schema, None) is None:
        return False
    try:
        duckdb.read_parquet(str(path)).aggregate("count(COLUMNS(*))").fetchall()
    except duckdb.Error as error:
        put_aside(root, path, error)
        return False
    return True


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Holds off other compactions on this machine."""
    place = root / ".tmp" / "compaction.lock"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = place.open("w")
    except OSError as error:
        raise files.unwritable(root, error) from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _batches(root: Path, table: Table, run: Path) -> Iterator[list[Loaded]]:
    """The run's files in lots of about ROWS rows or BYTES, one pair after the other."""
    batch: list[Loaded] = []
    for pair in sorted(p for p in run.iterdir() if p.is_dir()):
        place = pair.relative_to(root / table.name).as_posix()
        loaded = files.load(root, table, place, table.schema)
        batch += [f for f in loaded if f.known]
        large = sum(f.rows.nbytes for f in batch) >= BYTES
        if large or sum(f.rows.num_rows for f in batch) >= ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _gathered(root: Path, table: Table, run: Path, batch: list[Loaded], kept: set[str]) -> int:
    """Writes a volume of what no volume of the run holds yet, then removes the files."""
    rows = files.unique(table, pa.concat_tables(f.rows for f in batch))
    for path in sorted(run.glob(f"{VOLUME}*.parquet")):
        if opens(root, table, path):
            held = set(keys(table, pq.read_table(path, columns=list(table.key))))
            rows = rows.filter(pa.array([key not in held for key in keys(table, rows)], pa.bool_()))
    if rows.num_rows:
        rows = rows.sort_by(ORDER)
        if table.texts:
            rows = _texts_apart(root, table, rows, _samples(root, table, batch), kept)
        name = f"{VOLUME}{digest(*map(str, sorted(keys(table, rows))))}.parquet"
        files.write(root, run / name, rows, group_rows=GROUP_ROWS)
    files.remove(root, (f.path for f in batch))
    return int(rows.num_rows)


def _texts_apart(
    root: Path, table: Table, rows: pa.Table, samples: Mapping[str, texts.Samples], kept: set[str]
) -> pa.Table:
    """The rows by reference, after the texts that are not `kept` yet were written."""
    packed = texts.packed(table, rows, samples)
    fresh = {key: text for key, text in packed.texts.items() if key not in kept}
    if fresh:
        name = f"{VOLUME}{digest(*sorted(fresh))}.parquet"
        made = texts.table_of(fresh)
        files.write(root, root / TEXTS.name / name, made, group_rows=texts.GROUP_ROWS)
        kept |= set(fresh)
    return packed.rows


def _samples(root: Path, table: Table, batch: list[Loaded]) -> Mapping[str, texts.Samples]:
    """Raw times by iteration and shape, of the timings that lie beside the batch's files."""
    found: dict[str, dict[str, list[float]]] = {}
    if table is not ITERATIONS:
        return {}
    wanted = pa.schema([TIMINGS.schema.field(n) for n in ("iteration_id", "shape", "latencies")])
    for place in sorted({f.path.parent.relative_to(root / table.name) for f in batch}):
        for loaded in files.load(root, TIMINGS, place.as_posix(), wanted):
            for row in loaded.rows.to_pylist():
                found.setdefault(row["iteration_id"], {})[row["shape"]] = row["latencies"]
    return found


def keys(table: Table, rows: pa.Table) -> list[tuple[str, ...]]:
    """The key of each row."""
    return list(zip(*(rows.column(name).to_pylist() for name in table.key), strict=True))
