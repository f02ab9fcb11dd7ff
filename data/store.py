"""The ledger: a folder of Parquet files that any number of processes append to and read.

RUNS/iterations/RUN/HASH@DEVICE/step-003-ID.parquet   also timings/ and llm_calls/
RUNS/.tmp/                                            files being written
RUNS/set-aside/                                       files that could not be read
"""

import logging
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import duckdb

from data import codec, files, simulated, texts, views
from data.reading import Pair
from data.records import Iteration, LlmCall, digest
from data.rows import CallKey, Row, call_row, iteration_row, timing_rows, to_json
from data.schema import ITERATIONS, LLM_CALLS, TABLES, TIMINGS

T = TypeVar("T")

_log = logging.getLogger(__name__)


def folder_of(run_id: str, operator_hash: str, device: str) -> str:
    """Where a pair's files lie below each table's folder; any text gives a safe path.

    >>> folder_of("r1", "0123456789abcdef", "b200/../x")
    'r1/0123456789abcdef@b200%2F..%2Fx'
    """
    return f"{_part(run_id)}/{_part(f'{operator_hash}@{device}')}"


class Ledger:
    """All that is on record under one folder; nothing is created before the first append."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def ensure_writable(self) -> None:
        """Asks the disk before work is spent; LedgerError when it would not take a row."""
        files.ensure_writable(self.root)

    def append(self, iteration: Iteration) -> None:
        """Records one step, timings first; LedgerError when the disk does not take it.

        Appending the same record again changes nothing. Made-up rows and measured ones are never
        in one ledger: LedgerError.
        """
        simulated.check(self.root, iteration)
        row = iteration_row(iteration)
        place = folder_of(row["run_id"], row["operator_hash"], row["device"])
        name = f"step-{row['step']:03d}-{row['iteration_id']}.parquet"
        contents: dict[Path, bytes] = {}
        if timings := timing_rows(iteration, row["iteration_id"]):
            contents[self.root / "timings" / place / name] = files.packed(TIMINGS, timings)
        contents[self.root / "iterations" / place / name] = files.packed(ITERATIONS, [row])
        files.put_all(self.root, contents)

    def append_call(self, key: CallKey, call: LlmCall, *, sample: int | None = None) -> None:
        """Records a paid reply, before anybody judges it; LedgerError as `append`.

        `sample` is the number of calls before it, where the caller knows.
        """
        row = call_row(key, len(self.calls(key)) if sample is None else sample, call)
        name = f"{_stem(key)}-{row['call_id']}.parquet"
        path = self.root / "llm_calls" / _place(key) / name
        files.write_rows(self.root, path, LLM_CALLS, [row])

    def calls(self, key: CallKey) -> list[LlmCall]:
        """The calls on record for a step and role, oldest first."""
        return self.calls_of(key.run_id, key.operator_hash, key.device).get(key, [])

    def calls_of(
        self, run_id: str, operator_hash: str, device: str
    ) -> dict[CallKey, list[LlmCall]]:
        """The calls on record for a pair by step and role, oldest first."""
        names = CallKey.__slots__
        where = _pair(run_id, operator_hash, device)
        columns = [*names, "call_id", "sample", "record"]
        rows = files.read_pair(self.root, LLM_CALLS, where, columns).to_pylist()
        rows.sort(key=lambda r: (r["sample"], r["call_id"]))
        found: dict[CallKey, list[LlmCall]] = {}
        for row in self._whole(where, [r for r in rows if r["run_id"] == run_id]):
            if (call := _decoded(LlmCall, row)) is not None:
                found.setdefault(CallKey(**{n: row[n] for n in names}), []).append(call)
        return found

    def costs(self, run_id: str, operator_hash: str, device: str) -> list[float | None]:
        """Dollars of each call on record for a pair; None where they are unknown."""
        where = _pair(run_id, operator_hash, device)
        rows = files.read_pair(self.root, LLM_CALLS, where, ["call_id", "cost_usd"])
        return [row["cost_usd"] for row in rows.to_pylist()]

    def costs_of_run(self, run_id: str) -> list[float | None]:
        """Dollars of each call on record for a run; None where they are unknown."""
        with self.connect() as connection:
            asked = "SELECT cost_usd FROM llm_calls WHERE run_id = $1"
            return [cost for (cost,) in connection.execute(asked, [run_id]).fetchall()]

    def history(self, run_id: str, operator_hash: str, device: str) -> tuple[Iteration, ...]:
        """The steps of a pair in order, each once; reads no other pair's files."""
        columns = ["iteration_id", *_STEP, "ended_at", "record"]
        where = _pair(run_id, operator_hash, device)
        rows = files.read_pair(self.root, ITERATIONS, where, columns).to_pylist()
        pair = (run_id, operator_hash, device)
        mine = [r for r in rows if tuple(r[name] for name in _STEP[:3]) == pair]
        return _steps(self._whole(where, mine))

    def compact(self, run_id: str, operator_hash: str, device: str) -> None:
        """Rewrites a pair's files as one a table; others may append and read meanwhile."""
        for table in TABLES.values():
            files.merge(self.root, table, folder_of(run_id, operator_hash, device))
        files.sweep(self.root)

    def _whole(self, pair: Pair, rows: list[Row]) -> list[Row]:
        """The rows of a pair with whole records; one whose text is lost is passed over."""
        kept = texts.find(self.root, texts.needed(r["record"] for r in rows))
        samples: dict[str, dict[str, list[float]]] = {}
        if any(texts.sampled(r["record"]) for r in rows):
            columns = ["iteration_id", "shape", "latencies"]
            for timed in files.read_pair(self.root, TIMINGS, pair, columns).to_pylist():
                samples.setdefault(timed["iteration_id"], {})[timed["shape"]] = timed["latencies"]
        return [row for r in rows if (row := _with_record(r, kept, samples)) is not None]

    def connect(self) -> duckdb.DuckDBPyConnection:
        """An in-memory DuckDB with the views `iterations`, `best`, `timings`, `llm_calls`."""
        return views.connect(self.root)


_STEP = ("run_id", "operator_hash", "device", "contract", "lineage", "step")
"""What makes a step: two rows that agree in these are two records of one step."""


def _steps(rows: list[Row]) -> tuple[Iteration, ...]:
    """Iterations in step order; of two records of one step the one that ended first."""
    rows.sort(key=lambda r: (r["ended_at"] is None, r["ended_at"], r["iteration_id"]))
    first: dict[tuple[object, ...], Iteration] = {}
    for row in rows:
        place = tuple(row[name] for name in _STEP)
        if place not in first and (iteration := _decoded(Iteration, row)) is not None:
            first[place] = iteration
    return tuple(sorted(first.values(), key=lambda i: (i.move.step, i.move.lineage)))


def _with_record(
    row: Row, kept: dict[str, str], samples: dict[str, dict[str, list[float]]]
) -> Row | None:
    """The row with its whole record; None, with a warning, when a text of it is lost."""
    try:
        record = texts.whole(row["record"], kept, samples.get(row.get("iteration_id", ""), {}))
    except KeyError as error:
        _log.warning("passed over a row of run %s: text %s is lost", row["run_id"], error)
        return None
    return row | {"record": record}


def _decoded(kind: type[T], row: Row) -> T | None:
    """The row's record; None, with a warning, when another version wrote what we cannot read."""
    try:
        return codec.loads(kind, row["record"])
    except (TypeError, ValueError, KeyError) as error:
        _log.warning("passed over a %s of run %s: %s", kind.__name__, row["run_id"], error)
        return None


def _pair(run_id: str, operator_hash: str, device: str) -> Pair:
    place = folder_of(run_id, operator_hash, device)
    return Pair(folder=place, operator_hash=operator_hash, device=device)


def _place(key: CallKey) -> str:
    return folder_of(key.run_id, key.operator_hash, key.device)


def _stem(key: CallKey) -> str:
    return f"step-{key.step:03d}-{key.role}-{digest(to_json(key))}"


def _part(text: str) -> str:
    """`text` as one name of a path, different for different texts."""
    name = quote(text, safe="@+,=")
    if not name.strip("."):
        name = name.replace(".", "%2E")
    return name if 0 < len(name) <= 200 else f"%{digest(text)}"
