"""The columns are documented, and every row has them."""

from pathlib import Path

import pyarrow as pa
import pytest

from data.rows import call_row, iteration_row, moment, timing_rows
from data.schema import BEGIN, PAGE, QUERIES, TABLES, updated
from data.views import VIEWS
from tests.data.samples import call, confirmed, key, plain, rich

PROMISED = (
    "run_id epoch suite operator operator_hash device vendor lineage step candidate_id parent_ids "
    "reference verdict reason needs_review execution contract baseline speedup speedup_low "
    "speedup_high gain_over_parent techniques techniques_added agent_kind model cost_usd isolation "
    "started_at ended_at"
)
"""The columns of `iterations` that queries outside this repository rest on."""


def test_page_is_up_to_date() -> None:
    """`docs/ledger.md` says what the schema says; else run `python -m data.schema`."""
    page = PAGE.read_text(encoding="utf-8")
    assert updated(page) == page


def test_page_without_marks_is_refused() -> None:
    """A page that lost its marks is not silently left stale."""
    with pytest.raises(ValueError, match="lacks the line"):
        updated("# The ledger\n" + BEGIN)


def test_page_explains_every_view() -> None:
    """Each view has its line on the page."""
    page = PAGE.read_text(encoding="utf-8")
    assert [v for v in VIEWS if f"\n| `{v}` |" not in page] == []


def test_queries_say_their_question() -> None:
    """The first line of a query file is the question that it answers."""
    files = list(QUERIES.glob("*.sql"))
    assert {f.stem for f in files} >= {"best", "verdicts", "fast_p", "cost", "calibration"}
    assert [f.name for f in files if not f.read_text(encoding="utf-8").startswith("-- ")] == []


def test_promised_columns_are_there() -> None:
    """Names that other people's queries use do not vanish."""
    names = TABLES["iterations"].schema.names
    assert [n for n in PROMISED.split() if n not in names] == []


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_columns_are_unique_and_explained(table: object) -> None:
    """No column twice, none without a meaning, keys exist."""
    columns = {c.name: c for c in table.columns}  # type: ignore[attr-defined]  # ids as strings
    assert len(columns) == len(table.columns)  # type: ignore[attr-defined]  # same
    assert all(c.meaning for c in columns.values())
    assert set(table.key) <= set(columns)  # type: ignore[attr-defined]  # same


def test_rows_fill_every_column_and_no_other() -> None:
    """A value without a column would be dropped in silence; a column without a value is NULL."""
    full = iteration_row(rich())
    timing = timing_rows(rich(), "id")[1]
    paid = call_row(key(), 0, call()) | {"iteration_id": None}
    for name, row in (("iterations", full), ("timings", timing), ("llm_calls", paid)):
        assert set(row) == set(TABLES[name].schema.names)
        pa.Table.from_pylist([row], schema=TABLES[name].schema)
    assert [n for n, value in full.items() if value is None] == []


def test_row_without_candidate_is_null_not_empty() -> None:
    """Unknown is NULL: an ADMIT row has no language, no speed and no candidate."""
    row = iteration_row(plain(candidate=None))
    for name in ("candidate_id", "language", "source", "speedup", "build_ok", "isolation"):
        assert row.get(name) is None
    assert row["cost_usd"] == 0.0


def test_one_unknown_cost_makes_the_sum_unknown() -> None:
    """A price that nobody knows is never counted as nothing."""
    known = plain(calls=(call(cost_usd=0.5), call(cost_usd=0.25)))
    unknown = plain(calls=(call(cost_usd=0.5), call(cost_usd=None)))
    assert iteration_row(known)["cost_usd"] == 0.75
    assert iteration_row(unknown)["cost_usd"] is None


def test_any_change_is_another_id() -> None:
    """The id is the hash of all that is recorded."""
    ids = {
        iteration_row(i)["iteration_id"] for i in (plain(0), plain(1), confirmed(0, 1.5), rich())
    }
    assert len(ids) == 4


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01"])
def test_no_time_is_null(text: str) -> None:
    """A time that is none is unknown."""
    assert moment(text) is None


def test_page_is_where_the_checkout_is() -> None:
    """The page is written beside the code that generates it."""
    assert PAGE.is_relative_to(Path(__file__).parents[2])
