"""SQL over the ledger: an in-memory DuckDB with the views that queries rest on."""

import re
from pathlib import Path

import duckdb
import pyarrow as pa

from data import files, superseded, volumes
from data.errors import MisuseError
from data.schema import ITERATIONS, QUERIES, TABLES, Table

VIEWS = (
    *("additions", "best", "confirmed", "effects"),
    *("iterations", "llm_calls", "texts", "timings"),
)

DEFINITIONS = Path(__file__).with_name("views.sql")


def connect(root: Path) -> duckdb.DuckDBPyConnection:
    """A connection with the views; it can neither write files nor read any but the ledger's.

    Volumes are read in place, all else is copied. LedgerError when the folder cannot be read.
    """
    tables = {t.name: files.read_folder(root, t, "") for t in TABLES.values()}
    gathered = {t.name: volumes.readable(root, t) for t in TABLES.values()}
    connection = over(tables, gathered, root=root)
    paths = [str(path) for found in gathered.values() for path in found]
    connection.execute("SET allowed_paths = $1", [paths])
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def over(
    tables: dict[str, pa.Table],
    gathered: dict[str, list[Path]] | None = None,
    database: str | None = None,
    *,
    root: Path | None = None,
    copied: bool = False,
) -> duckdb.DuckDBPyConnection:
    """A connection with the views over rows and volumes, in a file with a database.

    Volumes are read in place unless they are `copied`. A file has the questions too. In `root` is
    kept what was found out about the volumes.
    """
    connection = duckdb.connect(database or ":memory:")
    connection.execute("SET parquet_metadata_cache = true")
    connection.execute("CREATE SCHEMA stored")
    for name, rows in tables.items():
        connection.register("incoming", rows)
        paths = (gathered or {}).get(name, [])
        _store(connection, TABLES[name], paths, copied=copied, alone=not rows.num_rows)
        connection.unregister("incoming")
    _supersede(connection, (gathered or {}).get(ITERATIONS.name, []), root)
    connection.execute(DEFINITIONS.read_text(encoding="utf-8"))
    if not connection.sql("FROM stored.superseded LIMIT 1").fetchall():
        connection.execute("CREATE OR REPLACE VIEW stored.steps AS FROM stored.iterations")
    if database:
        _ask_all(connection, questions())
    return connection


def _store(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    paths: list[Path],
    *,
    copied: bool,
    alone: bool,
) -> None:
    """`stored.NAME` of the rows that are registered as `incoming` and of the volumes.

    `alone`: nothing is incoming, so that no double of the volumes' keys needs to be looked for.
    """
    stored, columns = f"stored.{table.name}", ", ".join(table.schema.names)
    if not paths:
        connection.execute(f"CREATE TABLE {stored} AS FROM incoming")
        return
    source = _source(paths)
    connection.execute("CREATE SCHEMA IF NOT EXISTS loose")
    doubles = "" if alone else f" ANTI JOIN {source} USING ({', '.join(table.key)})"
    connection.execute(f"CREATE TABLE loose.{table.name} AS FROM incoming{doubles}")
    connection.execute(
        f"CREATE {'TABLE' if copied else 'VIEW'} {stored} AS SELECT {columns} FROM"  # noqa: S608 - names of ours
        f" (FROM loose.{table.name} UNION ALL BY NAME FROM {source})"
    )


def _source(paths: list[Path]) -> str:
    """What reads volumes in SQL."""
    listed = ", ".join("'{}'".format(str(p).replace("'", "''")) for p in paths)
    return f"read_parquet([{listed}], union_by_name = true)"


def _supersede(connection: duckdb.DuckDBPyConnection, paths: list[Path], root: Path | None) -> None:
    """`stored.superseded`: rows whose step is on record a second time, and ended first there.

    Where the volumes' own are known, only pairs with a row in no volume are looked at.
    """
    rows, known = "stored.iterations", list[str]()
    if paths and root is not None:
        known = superseded.among(root, paths, _source(paths))
        alone = not connection.sql("FROM loose.iterations LIMIT 1").fetchall()
        rows = "loose.iterations" if alone else superseded.NEAR_LOOSE
    connection.execute(f"CREATE TABLE stored.superseded AS {superseded.FOUND.format(rows=rows)}")
    connection.execute("INSERT INTO stored.superseded SELECT unnest($1::VARCHAR[])", [known])


def _ask_all(connection: duckdb.DuckDBPyConnection, names: list[str]) -> None:
    """A view for each question that has not the name of a view."""
    for name in names:
        if name not in VIEWS:
            connection.execute(f"CREATE VIEW {name} AS {question(name)}")


def query(root: Path, sql: str) -> pa.Table:
    """The answer to `sql`; MisuseError in one line when it cannot be answered.

    A volume in which damage shows is set aside, and the others answer.
    """
    try:
        return _answer(root, sql)
    except _ASKED_WRONGLY as error:
        raise _misuse(error) from error
    except duckdb.Error as error:
        if not volumes.damaged(root):
            raise _misuse(error) from error
    return query(root, sql)


_ASKED_WRONGLY = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.ParserException,
    duckdb.PermissionException,
    duckdb.SyntaxException,
)
"""What damage never looks like, so that a typing error does not cost a look through all volumes."""


def _answer(root: Path, sql: str) -> pa.Table:
    with connect(root) as connection:
        _ask_all(connection, [n for n in questions() if re.search(rf"\b{n}\b", sql)])
        answer = connection.sql(sql)
        table: pa.Table = answer.to_arrow_table() if answer is not None else pa.table({})
    return table


def _misuse(error: duckdb.Error) -> MisuseError:
    line = str(error).strip().partition("\n")[0]
    return MisuseError(f"{line}; views: {', '.join(VIEWS)}")


def questions() -> list[str]:
    """The names of the questions in `data/queries/`."""
    return sorted(path.stem for path in QUERIES.glob("*.sql"))


def question(name: str) -> str:
    """The SQL of `data/queries/NAME.sql`; MisuseError for an unknown name."""
    if name not in questions():
        known = ", ".join(questions())
        raise MisuseError(f"unknown query {name!r}; known: {known} (data/queries)")
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
