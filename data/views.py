"""SQL over the ledger: an in-memory DuckDB with the views that queries rest on."""

import math
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from data.errors import MisuseError
from data.files import read_folder
from data.schema import QUERIES, TABLES

VIEWS = ("additions", "best", "effects", "iterations", "llm_calls", "timings")

DEFINITIONS = Path(__file__).with_name("views.sql")


def connect(root: Path) -> duckdb.DuckDBPyConnection:
    """A connection with the views; it holds a copy and can neither read nor write files.

    LedgerError when the folder is there but cannot be read.
    """
    connection = over({t.name: read_folder(root, t, "") for t in TABLES.values()})
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def over(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """A connection with the views and one more for each question, over rows in memory."""
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA stored")
    for name, rows in tables.items():
        connection.register("incoming", rows)
        connection.execute(f"CREATE TABLE stored.{name} AS SELECT * FROM incoming")  # noqa: S608 - a name of ours
        connection.unregister("incoming")
    connection.execute(DEFINITIONS.read_text(encoding="utf-8"))
    for name in questions():
        if name not in VIEWS:
            connection.execute(f"CREATE VIEW {name} AS {question(name)}")
    return connection


def query(root: Path, sql: str) -> pa.Table:
    """The answer to `sql`; MisuseError in one line when it cannot be answered."""
    with connect(root) as connection:
        try:
            answer = connection.sql(sql)
            table: pa.Table = answer.to_arrow_table() if answer is not None else pa.table({})
        except duckdb.Error as error:
            raise MisuseError(f"{_first_line(error)}; views: {', '.join(VIEWS)}") from error
    return table


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as JSON can hold them: times as ISO 8601 in UTC, no infinities."""
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def questions() -> list[str]:
    """The names of the questions in `data/queries/`."""
    return sorted(path.stem for path in QUERIES.glob("*.sql"))


def question(name: str) -> str:
    """The SQL of `data/queries/NAME.sql`; MisuseError for an unknown name."""
    if name not in questions():
        known = ", ".join(questions())
        raise MisuseError(f"unknown query {name!r}; known: {known} (data/queries)")
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")


def _plain(value: object) -> object:
    """One value as JSON can hold it.

    >>> _plain([datetime(2026, 1, 2), Decimal("3"), float("nan")])
    ['2026-01-02T00:00:00Z', 3, None]
    """
    match value:
        case list() | tuple():
            return [_plain(v) for v in value]
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}
        case datetime():
            return value.isoformat() + ("" if value.tzinfo else "Z")
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def _first_line(error: duckdb.Error) -> str:
    return str(error).strip().partition("\n")[0]
