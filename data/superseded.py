"""Second records of one step, as two processes leave them: which rows give way to an earlier one.

Looked for among a million rows they cost each query 0.3 s. Volumes never change, so what was found
in them is kept in `RUNS/.cache/`, under their names, sizes and times; it can be removed at will.
"""

import json
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import duckdb

from data.records import digest

FOUND = """
    WITH steps AS (
        SELECT *, hash(run_id, operator_hash, device, contract, lineage, step) AS place FROM {rows}
    ), doubled AS (
        SELECT place FROM steps GROUP BY place HAVING count(*) > 1
    )
    SELECT iteration_id FROM steps WHERE place IN (FROM doubled)
    QUALIFY row_number() OVER (
        PARTITION BY run_id, operator_hash, device, contract, lineage, step
        ORDER BY ended_at NULLS LAST, iteration_id
    ) > 1
"""
"""Of two records the one that ended first counts."""
NEAR_LOOSE = """(
    FROM stored.iterations
    SEMI JOIN (FROM loose.iterations) USING (run_id, operator_hash, device))"""
"""Rows of the pairs that have rows in no volume."""
LARGE_BYTES = 20_000_000
"""Of volumes from which on it is worth a file: 80,000 rows, 0.03 s."""
_PREFIX = "superseded-"


def among(root: Path, volumes: Sequence[Path], source: str) -> list[str]:
    """The ids of superseded rows in volumes of `iterations`, which `source` reads in SQL."""
    states = {path: path.stat() for path in sorted(volumes)}
    if sum(state.st_size for state in states.values()) < LARGE_BYTES:
        return _found(source)
    told = (f"{p.relative_to(root)} {s.st_size} {s.st_mtime_ns}" for p, s in states.items())
    place = root / ".cache" / f"{_PREFIX}{digest(*told)}.json"
    try:
        kept: list[str] = json.loads(place.read_text())
    except (OSError, ValueError):
        kept = _found(source)
        _keep(place, json.dumps(kept))
    return kept


def _found(source: str) -> list[str]:
    with duckdb.connect() as connection:
        return [key for (key,) in connection.sql(FOUND.format(rows=source)).fetchall()]


def _keep(place: Path, text: str) -> None:
    """Puts it there in place of older ones, where the folder can be written."""
    fresh = place.with_name(f"{uuid.uuid4().hex}.new")
    with suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        fresh.write_text(text)
        for older in place.parent.glob(f"{_PREFIX}*.json"):
            older.unlink(missing_ok=True)
        fresh.replace(place)
