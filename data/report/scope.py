"""What a report is about: a whole ledger, or one run of it."""

from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa

from data import simulated, views
from data.errors import MisuseError
from data.mirror import address

LAST = "last"
"""Stands for the run that ended latest."""
_LATEST = (
    "SELECT run_id FROM iterations GROUP BY run_id ORDER BY max(ended_at) DESC NULLS LAST, run_id"
)
_NARROW = (
    "ALTER {kind} stored.{name} RENAME TO all_{name}",
    "CREATE VIEW stored.{name} AS FROM stored.all_{name} WHERE run_id = getvariable('run')",
)
"""Below all views, which name what they rest on and so rest on the narrower one."""
_IS_VIEW = "SELECT * FROM duckdb_views() WHERE schema_name = 'stored' AND view_name = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The rows that a report speaks of; every question is answered over them alone."""

    connection: duckdb.DuckDBPyConnection
    ledger: str
    """Its place, as a person gave it."""
    run_id: str | None
    """None means all runs."""
    made_up: bool
    """Whether its rows are those of simulated devices."""

    def asked(self, sql: str) -> pa.Table:
        """The answer to `sql`."""
        return self.connection.sql(sql).to_arrow_table()


def scope(root: Path, run: str | None) -> Scope:
    """The ledger in `root`, narrowed to a run when one is named; MisuseError when there is none."""
    connection = views.connect(root)
    whole = Scope(
        connection=connection, ledger=address(root), run_id=None, made_up=simulated.marked(root)
    )
    if run is None:
        return whole
    known = [name for (name,) in connection.execute(_LATEST).fetchall()]
    run_id = known[0] if run == LAST and known else run
    if run_id not in known:
        listed = ", ".join(known[:5]) or "none"
        more = f" and {len(known) - 5} more" if len(known) > 5 else ""
        raise MisuseError(f"no run {run!r} in {address(root)}; known, latest first: {listed}{more}")
    connection.execute("SET VARIABLE run = $1", [run_id])
    for name in ("iterations", "llm_calls"):
        kind = "VIEW" if connection.execute(_IS_VIEW, [name]).fetchall() else "TABLE"
        for statement in _NARROW:
            connection.execute(statement.format(kind=kind, name=name))
    return replace(whole, run_id=run_id)
