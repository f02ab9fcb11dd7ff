"""Queries answer what they say, on rows made by hand, and can change nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.answers import json_lines
from data.answers import plain as as_json
from data.errors import MisuseError
from data.records import (
    Advice,
    Bottleneck,
    Candidate,
    Contract,
    Iteration,
    Mode,
    Move,
    Operator,
    Policy,
)
from data.store import Ledger
from data.verdict import Outcome, Verdict
from data.views import VIEWS, query, question, questions
from tests.data.samples import CPU, RELU, beside_parent, call, confirmed, emulated, key, plain

GEMM = Operator(name="gemm", source="class Model: gemm")
EMULATED = replace(CPU, name="gpu", execution="emulated")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "runs")


def ask(ledger: Ledger, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = query(ledger.root, sql).to_pylist()
    return rows


def record(ledger: Ledger, *iterations: Iteration) -> None:
    for iteration in iterations:
        ledger.append(iteration)


@pytest.mark.parametrize("view", VIEWS)
def test_empty_ledger_has_views_with_columns(ledger: Ledger, view: str) -> None:
    """Nothing on record is an empty answer, not an error."""
    table = query(ledger.root, f"SELECT * FROM {view}")
    assert table.num_rows == 0
    assert {"contract", "text_id"} & set(table.column_names)
    assert not ledger.root.exists()


@pytest.mark.parametrize("name", questions())
def test_questions_answer_on_an_empty_ledger(ledger: Ledger, name: str) -> None:
    """Every query file runs before anything is recorded."""
    assert ask(ledger, question(name)) == []


def test_best_holds_confirmed_hardware_only(ledger: Ledger) -> None:
    """Unconfirmed, wrong, cheating and emulated rows never become champions, however fast."""
    record(
        ledger,
        confirmed(0, 1.5),
        confirmed(1, 9.0, move=Move(mode=Mode.OPTIMISE, step=1, lineage="a")),
        confirmed(2, 9.0, verdict=Verdict.CHEATED),
        confirmed(3, 9.0, verdict=Verdict.NOT_AUTHORED),
        emulated(confirmed(4, 9.0), "gpu"),
    )
    assert [(r["step"], r["speedup"]) for r in ask(ledger, "FROM best")] == [(0, 1.5)]


def test_best_goes_by_the_lower_bound(ledger: Ledger) -> None:
    """A lucky mean with a wide interval loses; each contract has its own champion."""
    record(
        ledger,
        confirmed(0, 1.6, speedup_low=1.55),
        confirmed(1, 3.0, speedup_low=0.9),
        confirmed(2, 1.7, speedup_low=None),
        confirmed(3, 1.1, run_id="later"),
        confirmed(4, 4.0, contract=Contract(policy=Policy.TF32)),
    )
    found = ask(ledger, "SELECT step, contract FROM best ORDER BY step")
    assert [(r["step"], r["contract"]) for r in found] == [
        (0, "strict/flagged/fixed"),
        (4, "tf32/flagged/fixed"),
    ]


def test_best_has_the_columns_of_iterations(ledger: Ledger) -> None:
    """One question can be asked of either."""
    columns = [query(ledger.root, f"FROM {v}").column_names for v in ("best", "iterations")]
    assert columns[0] == columns[1]


def test_calls_know_their_step(ledger: Ledger) -> None:
    """A call made before its step was recorded is joined to it afterwards."""
    ledger.append_call(key(0), call())
    assert ask(ledger, "SELECT iteration_id FROM llm_calls") == [{"iteration_id": None}]
    ledger.append(plain(0))
    sql = "SELECT i.step FROM llm_calls JOIN iterations i USING (iteration_id)"
    assert [r["step"] for r in ask(ledger, sql)] == [0]


def test_timings_without_their_step_are_not_seen(ledger: Ledger) -> None:
    """What a killed process left of a step does not count."""
    record(ledger, confirmed(0, 1.5), confirmed(1, 1.5))
    (lost,) = (ledger.root / "iterations").rglob("step-001-*.parquet")
    lost.unlink()
    assert [r["step"] for r in ask(ledger, "FROM timings")] == [0]


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{root}/out.csv'",
        "COPY iterations TO '{root}/out.parquet'",
        "ATTACH '{root}/out.db'",
        "EXPORT DATABASE '{root}/out'",
        "INSTALL httpfs",
        "SELECT * FROM read_text('{root}/secret')",
        "SELECT * FROM '{root}/secret'",
        "SET enable_external_access = true",
        "SELECT * FROM nowhere",
        "SELECT nothing FROM iterations",
        "SELEC",
    ],
)
def test_refused_sql_is_one_line_and_touches_no_file(ledger: Ledger, sql: str) -> None:
    """SQL can neither read nor write files; the message names the views."""
    ledger.append(plain(0))
    (ledger.root / "secret").write_text("s3cret")
    before = sorted(ledger.root.rglob("*"))
    with pytest.raises(MisuseError) as caught:
        query(ledger.root, sql.format(root=ledger.root))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(
        "; views: additions, best, confirmed, effects, iterations, llm_calls, texts, timings"
    )
    assert sorted(ledger.root.rglob("*")) == before


@pytest.mark.parametrize(
    "sql", ["DROP VIEW best", "DELETE FROM stored.iterations", "", "-- nothing"]
)
def test_sql_changes_its_copy_at_most(ledger: Ledger, sql: str) -> None:
    """What a statement does to the copy is gone with it."""
    ledger.append(confirmed(0, 1.5))
    query(ledger.root, sql)
    assert len(ask(ledger, "FROM best")) == 1


def test_answers_are_json(ledger: Ledger) -> None:
    """Times, big sums and infinities of an answer have a JSON form."""
    ledger.append(plain(0))
    columns = "started_at, sum(step) AS n, 'inf'::DOUBLE AS i, parent_ids"
    sql = f"SELECT {columns} FROM iterations GROUP BY ALL"
    assert as_json(query(ledger.root, sql)) == [
        {"started_at": "2026-01-01T00:00:00Z", "n": 0, "i": None, "parent_ids": []}
    ]


def test_lines_of_json_are_the_plain_rows(ledger: Ledger) -> None:
    """The two ways to write an answer agree on every type, on nothing and on odd text."""
    sql = """SELECT * FROM (VALUES
        (TIMESTAMP '2026-01-02 03:04:05.000600', 'é"\\%', true, 1.5, ['nan'::DOUBLE], 7::HUGEINT),
        (TIMESTAMP '1999-12-31 23:59:59', '', NULL, 'inf'::DOUBLE, [], NULL),
        (NULL, NULL, false, NULL, NULL, -1)) v(moment, "te%xt", flag, real, list, large)"""
    answer = query(ledger.root, sql)
    rows = as_json(answer)
    assert [row["moment"] for row in rows] == [
        "2026-01-02T03:04:05.000600Z", "1999-12-31T23:59:59Z", None,
    ]  # fmt: skip
    assert list(json_lines(answer)) == [json.dumps(row) for row in rows]


def test_unknown_question_names_the_known(ledger: Ledger) -> None:
    """A typing error in a query's name is answered with the names."""
    with pytest.raises(
        MisuseError, match=r"unknown query 'worst'; known: accepted, .*best, calibration"
    ):
        question("worst")


def test_best_question_lists_champions(ledger: Ledger) -> None:
    """Fastest first within a device."""
    record(ledger, confirmed(0, 1.5), confirmed(0, 2.5, operator=GEMM))
    found = ask(ledger, question("best"))
    assert [(r["operator"], r["speedup"]) for r in found] == [("gemm", 2.5), ("relu", 1.5)]


def test_verdicts_counts_ends(ledger: Ledger) -> None:
    """Shares within device, agent and model; the commonest reason is named."""
    wrong = {"verdict": Verdict.WRONG, "reason": "off by one"}
    record(ledger, plain(0), plain(1, **wrong), plain(2, **wrong), plain(3, **wrong))
    found = ask(ledger, question("verdicts"))
    assert [(r["verdict"], r["steps"], r["share"]) for r in found] == [
        ("WRONG", 3, 0.75),
        ("CORRECT", 1, 0.25),
    ]
    assert found[0]["commonest_reason"] == "off by one"


def test_fast_p_counts_unsolved_operators(ledger: Ledger) -> None:
    """An operator without a champion stays in the denominator; the bound is exclusive."""
    others = [Operator(name=f"o{n}", source=f"o{n}") for n in range(4)]
    refused = {"verdict": Outcome.NOT_COVERED, "candidate": None}
    record(
        ledger,
        confirmed(0, 1.0, operator=others[0], verdict=Verdict.CORRECT),
        confirmed(0, 1.5, operator=others[1]),
        confirmed(0, 2.1, operator=others[2]),
        plain(0, operator=others[3], **refused),
        plain(0, device=EMULATED),
    )
    (found,) = ask(ledger, question("fast_p"))
    assert found == {
        "device": "cpu",
        "contract": "strict/flagged/fixed",
        "operators": 4,
        "fast_0": 0.75,
        "fast_1": 0.5,
        "fast_1.5": 0.25,
        "fast_2": 0.25,
    }


def test_cost_does_not_hide_unknown_prices(ledger: Ledger) -> None:
    """Sums are of known costs, and the number of unknown ones stands beside."""
    ledger.append_call(key(0), call(cost_usd=0.25))
    ledger.append_call(key(1), call(cost_usd=None))
    ledger.append_call(key(1, "analyst"), call(role="analyst", cost_usd=None))
    found = {r["role"]: r for r in ask(ledger, question("cost"))}
    generator, analyst = found["generator"], found["analyst"]
    assert (generator["calls"], generator["cost_usd"]) == (2, 0.25)
    assert generator["calls_of_unknown_cost"] == 1
    assert generator["prompt_tokens"] == 200
    assert analyst["cost_usd"] is None


def advised(step: int, predicted: float, real: float | None) -> Iteration:
    """A step that carried out an advice."""
    advice = Advice(
        bottleneck=Bottleneck.MEMORY,
        evidence=(),
        change="fuse",
        technique="fuse_epilogue",
        expected_gain=predicted,
        agent_kind="llm",
        model="m",
    )
    return plain(step, advice=advice, gain_over_parent=real)


def test_calibration_compares_predicted_with_real(ledger: Ledger) -> None:
    """Twice too high and twice too low are a factor of two; failed steps count as steps only."""
    record(ledger, advised(0, 2.0, 1.0), advised(1, 1.5, 3.0), advised(2, 9.0, None), plain(3))
    (found,) = ask(ledger, question("calibration"))
    assert (found["analyst"], found["model"]) == ("llm", "m")
    assert (found["steps"], found["measured"]) == (3, 2)
    assert found["typical_error"] == pytest.approx(2.0, rel=1e-9)
    assert (found["predicted"], found["real"]) == (1.75, 2.0)
    assert found["right_direction"] == 0.5


def added(step: int, tags: tuple[str, ...], gain: float | None, **other: Any) -> Iteration:
    """A step that added `tags` to its parent."""
    child = Candidate(
        source=f"# {step}", language="cpp", agent_kind="offline", agent_name="map", parents=("p",)
    )
    shared = {"candidate": child, "techniques_added": tags, "gain_over_parent": gain}
    shared |= {"run": beside_parent(gain)} if gain else {}
    return plain(step, **(shared | other))


def test_techniques_counts_single_additions_only(ledger: Ledger) -> None:
    """Two tags at once say nothing about either; losses and failures stay in."""
    first = Candidate(source="# first", language="cpp", agent_kind="offline", agent_name="map")
    record(
        ledger,
        added(0, ("unroll",), 2.0),
        added(1, ("unroll",), 0.5, operator=replace(RELU, source="other")),
        added(2, ("unroll",), None, verdict=Verdict.WRONG),
        added(3, ("unroll", "tile"), 8.0),
        emulated(added(4, ("unroll",), 8.0), "gpu"),
        added(5, ("unroll",), None, candidate=first),
        added(6, ("tile",), 1.0),
    )
    tile, unroll = ask(ledger, question("techniques"))
    assert (tile["technique"], tile["steps"], tile["helped"], tile["hurt"]) == ("tile", 1, 0, 0)
    assert (unroll["steps"], unroll["timed"], unroll["failed"]) == (3, 2, 1)
    assert (unroll["helped"], unroll["hurt"]) == (1, 1)
    assert unroll["mean_gain"] == pytest.approx(1.0, rel=1e-9)
    assert (unroll["worst_gain"], unroll["best_gain"]) == (0.5, 2.0)


def test_relu_is_one_operator_by_content() -> None:
    """The samples' hash is the source's, whatever the name."""
    assert replace(RELU, name="other").hash == RELU.hash
