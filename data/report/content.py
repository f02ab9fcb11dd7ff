"""All that a report says, as plain data: answers to shipped questions, nothing computed anew."""

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from data.report.packing import Json, chunk, plain, table
from data.report.scope import Scope
from data.report.stories import ROOF, Story, stories
from data.views import question

QUESTIONS = (
    "coverage",
    "fast_p",
    "speedups",
    "best",
    "transfer",
    "what_to_try_first",
    "techniques",
    "kernel_transfer",
    "reference_transfer",
    "head_start",
    "precision_split",
    "verdicts",
    "failures",
    "first_correct",
    "cost",
    "calibration",
    "utilisation",
    "drift",
)
"""In the order in which the page has them."""
ROWS = 20_000
"""Rows of one table; the rest is named and left to `kforge query`."""
EVIDENCE_BYTES = 4_000_000
"""Of all rows behind the transfer map."""

_SQL = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What goes into the page: the data that it opens with and the chunks that it unpacks later."""

    data: Json
    chunks: tuple[str, ...]


def content(scope: Scope) -> Content:
    """The report on the rows of the scope."""
    left_out: list[str] = []
    tables = {name: _answer(scope, name, left_out) for name in QUESTIONS}
    pairs = _asked(scope, "pairs")
    told = list(stories(scope, pairs))
    shown = pairs.slice(0, max(ROWS, len(told)))
    evidence = _evidence(scope, tables["transfer"], left_out)
    if len(told) < pairs.num_rows:
        left_out.append(_untold(pairs.num_rows, len(told)))
    if shown.num_rows < pairs.num_rows:
        left_out.append(_rows_left_out("pairs", shown.num_rows, pairs.num_rows))
    data = {
        "about": _about(scope, pairs.num_rows),
        "tables": {name: _described(name, rows) for name, rows in tables.items()},
        "pairs": table(shown),
        "predictions": table(_asked(scope, "predictions")),
        "roofline": table(_roofs(told)),
        "stories": [len(story.packed) for story in told],
        "evidence": {technique: len(text) for technique, text in evidence.items()},
        "left_out": left_out,
    }
    return Content(data=data, chunks=(*(s.packed for s in told), *evidence.values()))


def _asked(scope: Scope, name: str) -> pa.Table:
    return scope.asked((_SQL / f"{name}.sql").read_text(encoding="utf-8"))


def _answer(scope: Scope, name: str, left_out: list[str]) -> pa.Table:
    """The first rows of a question's answer; of one run where the question names runs."""
    rows = scope.asked(question(name))
    if rows.num_rows > ROWS:
        left_out.append(_rows_left_out(name, ROWS, rows.num_rows))
    return rows.slice(0, ROWS)


def _described(name: str, rows: pa.Table) -> Json:
    """A question's answer with what the question says of itself."""
    lines = question(name).splitlines()
    said = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
    return table(rows) | {"question": said[0], "note": " ".join(said[1:])}


def _about(scope: Scope, pairs: int) -> Json:
    (counts,) = _asked(scope, "overview").to_pylist()
    return {name: plain(value) for name, value in counts.items()} | {
        "ledger": plain(scope.ledger),
        "run_id": plain(scope.run_id),
        "pairs": pairs,
        "made_up": scope.made_up,
        "written": plain(datetime.now(UTC).replace(tzinfo=None)),
        "version": version("kforge"),
    }


def _roofs(told: list[Story]) -> pa.Table:
    """One row a pair whose time can be set against its roofline; `pair` is its index."""
    rows = [{"pair": n, **story.roof} for n, story in enumerate(told) if story.roof]
    fields = [("pair", pa.int64()), *((name, pa.float64()) for name in ROOF)]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _evidence(scope: Scope, transfer: pa.Table, left_out: list[str]) -> dict[str, str]:
    """By technique, those of the clearest findings first: the rows that its cells count."""
    techniques = pc.unique(transfer.column("technique")).to_pylist()
    rows = _asked(scope, "evidence") if techniques else None
    chunks: dict[str, str] = {}
    size = 0
    for technique in techniques:
        assert rows is not None
        mine = rows.filter(pc.equal(rows.column("technique"), technique))
        text = chunk(table(mine.drop_columns("technique")))
        size += len(text)
        if size > EVIDENCE_BYTES:
            left_out.append(
                f"The evidence of {len(techniques) - len(chunks)} of {len(techniques)} techniques"
                " in the transfer map: kforge query \"FROM effects WHERE technique = '...'\""
            )
            break
        chunks[technique] = text
    return chunks


def _untold(pairs: int, told: int) -> str:
    return (
        f"The stories of {pairs - told:,} of {pairs:,} pairs, champions and the latest being told"
        " first: kforge show OPERATOR@DEVICE"
    )


def _rows_left_out(name: str, shown: int, total: int) -> str:
    return f"{total - shown:,} of {total:,} rows of `{name}`: kforge query {name}"
