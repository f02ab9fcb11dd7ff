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

VIEWS = ("best", "iterations", "llm_calls", "timings")

_DEFINITIONS = """
CREATE VIEW iterations AS
    SELECT * FROM stored.iterations
    QUALIFY row_number() OVER (
        PARTITION BY run_id, operator_hash, device, contract, lineage, step
        ORDER BY ended_at NULLS LAST, iteration_id
    ) = 1;
CREATE VIEW best AS
    SELECT * FROM iterations
    WHERE mode = 'confirm' AND verdict IN ('CORRECT', 'FASTER') AND execution = 'hardware'
    QUALIFY row_number() OVER (
        PARTITION BY operator_hash, device, contract
        ORDER BY speedup_low DESC NULLS LAST, ended_at DESC NULLS LAST, iteration_id
    ) = 1;
CREATE VIEW timings AS
    SELECT * FROM stored.timings SEMI JOIN iterations USING (iteration_id);
CREATE VIEW llm_calls AS
    SELECT c.* REPLACE (i.iteration_id AS iteration_id)
    FROM stored.llm_calls c LEFT JOIN iterations i
    USING (run_id, operator_hash, device, contract, lineage, step);
"""
"""The same step recorded twice (two processes, one killed late) counts once: the earlier end."""


def connect(root: Path) -> duckdb.DuckDBPyConnection:
    """A connection with the views; it holds a copy and can neither read nor write files.

    LedgerError when the folder is there but cannot be read.
    """
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA stored")
    for table in TABLES.values():
        connection.register("incoming", read_folder(root, table, ""))
        connection.execute(f"CREATE TABLE stored.{table.name} AS SELECT * FROM incoming")  # noqa: S608 - a name of ours
        connection.unregister("incoming")
    connection.execute(_DEFINITIONS)
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
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


def question(name: str) -> str:
    """The SQL of `data/queries/NAME.sql`; MisuseError for an unknown name."""
    known = sorted(path.stem for path in QUERIES.glob("*.sql"))
    if name not in known:
        raise MisuseError(f"unknown query {name!r}; known: {', '.join(known)} (data/queries)")
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
