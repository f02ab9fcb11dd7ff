"""What a person does with a whole ledger: look it through, take another one in, give it away."""

import os
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from data import files, simulated, texts, views, volumes
from data.errors import LedgerError, MisuseError
from data.mirror import pull, remote
from data.reading import VOLUME, opens, parsed, read
from data.schema import TABLES, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What lies in a ledger's table."""

    table: str
    files: int
    rows: int
    doubles: int
    """Rows of a key that came before: a compaction that was cut leaves them, they count once."""
    broken: int
    """Files that this look set aside."""
    lost: int
    """Long texts that its rows refer to and that nobody has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What became of another ledger's files."""

    taken: int
    known: int
    refused: tuple[Path, ...]


def check(root: Path) -> list[State]:
    """Reads every file to its last page; what is no file of its table is set aside."""
    require(root)
    pull(root, root)
    states = [_state(root, table) for table in reversed(TABLES.values())]
    return states[::-1]


def set_aside(root: Path) -> list[Path]:
    """Files that somebody should look at."""
    return sorted(p for p in (root / "set-aside").rglob("*") if p.is_file())


def merge(root: Path, other: Path) -> Merged:
    """Copies the files of another ledger that this one lacks; the other is not changed.

    Names come from the content, so a file of the same name is the same file.
    """
    require(other)
    simulated.same_kind(root, other)
    taken = known = 0
    refused: list[Path] = []
    for table in reversed(TABLES.values()):  # what others refer to comes first
        for path in sorted((other / table.name).rglob("*.parquet")):
            target = root / path.relative_to(other)
            if target.exists():
                known += 1
            elif (content := _whole(table, path)) is None:
                refused.append(path)
            else:
                files.put(root, target, content)
                taken += 1
    return Merged(taken=taken, known=known, refused=tuple(refused))


def export(root: Path, out: Path) -> None:
    """Writes a DuckDB file with all rows, views and questions; MisuseError when it is there."""
    require(root)
    if out.exists():
        raise MisuseError(f"{out} is there already; remove it or name another file")
    _written(root, out, copied=True)


def attach(root: Path, out: Path) -> None:
    """Writes a small DuckDB file with views and questions that reads the volumes where they lie.

    Rows that are in no volume are copied. An older file of this kind is replaced, no other one.
    """
    require(root)
    if out.exists() and not _attached(out):
        raise MisuseError(f"{out} is there and was not made by kforge ledger attach; name another")
    fresh = out.with_name(f"{out.name}.{os.getpid()}.new")
    try:
        _written(root.resolve(), fresh, copied=False)
        fresh.replace(out)
    except OSError as error:
        raise LedgerError(f"cannot write {out}: {error.strerror}; choose another file") from error
    finally:
        fresh.unlink(missing_ok=True)


def _written(root: Path, out: Path, *, copied: bool) -> None:
    rows = {t.name: files.read_folder(root, t, "") for t in TABLES.values()}
    gathered = {t.name: volumes.readable(root, t) for t in TABLES.values()}
    try:
        with views.over(rows, gathered, database=str(out), copied=copied) as connection:
            if not copied:
                connection.execute("CREATE TABLE stored.attached AS SELECT $1 AS root", [str(root)])
    except duckdb.IOException as error:
        said = str(error).partition("\n")[0]
        raise LedgerError(f"cannot write {out}: {said}; choose another file") from error


def _attached(out: Path) -> bool:
    """Whether `attach` made a file."""
    try:
        with duckdb.connect(str(out), read_only=True) as connection:
            return bool(connection.sql("FROM stored.attached").fetchall())
    except duckdb.Error:
        return False


def require(root: Path) -> None:
    """MisuseError when there is no ledger."""
    if not remote(root) and not any((root / name).is_dir() for name in TABLES):
        raise MisuseError(f"no ledger in {root}; run kforge port first or give --runs")


def _whole(table: Table, path: Path) -> bytes | None:
    """The content of a file of the table; None when it is none."""
    try:
        content = path.read_bytes()
        parsed(table, path, pa.BufferReader(content), table.schema, None)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return content


def _state(root: Path, table: Table) -> State:
    before = len(set_aside(root))
    seen: set[tuple[str, ...]] = set()
    wanted: set[str] = set()
    rows = count = 0
    for path in sorted((root / table.name).rglob("*.parquet")):
        volume = path.name.startswith(VOLUME)
        if not opens(root, table, path) or (volume and not volumes.intact(root, table, path)):
            continue
        if (loaded := read(root, table, path, table.schema, None)) is not None:
            seen |= set(volumes.keys(table, loaded.rows))
            wanted |= texts.referred(table, loaded.rows)
            rows += loaded.rows.num_rows
            count += 1
    broken = len(set_aside(root)) - before
    lost = len(wanted - texts.ids(root)) if wanted else 0
    doubles = rows - len(seen)
    return State(
        table=table.name, files=count, rows=rows, doubles=doubles, broken=broken, lost=lost
    )
