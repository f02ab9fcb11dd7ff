"""Long texts are stored once and come back to the byte."""

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data import texts
from data.records import Iteration
from data.rows import to_json
from data.store import Ledger
from data.upkeep import check
from data.views import query
from data.volumes import gather
from flows.cli import run
from tests.data.ledger_worker import PAIR
from tests.data.samples import call, confirmed, key, plain, rich

LONG = "def kernel():\n    return 'é漢\\\"'\n" * 40
VERSION3 = Path(__file__).with_name("version3")


def long(step: int = 3) -> Iteration:
    """A rich step whose source, prompt and reply are long."""
    filled = rich(step)
    assert filled.candidate is not None
    asked = call(prompt=LONG * 2, reply=LONG * 3)
    return replace(filled, candidate=replace(filled.candidate, source=LONG), calls=(asked,))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Three steps with one source, a call, in volumes."""
    made = Ledger(tmp_path / "runs")
    for step in range(3):
        made.append(long(step))
    made.append_call(key(0), call(prompt=LONG * 2, reply=LONG * 3, reasoning="short"))
    gather(made.root)
    return made


def texts_of(ledger: Ledger) -> list[Path]:
    return sorted((ledger.root / "texts").glob("*.parquet"))


def stored(ledger: Ledger) -> list[str]:
    return [t for path in texts_of(ledger) for t in pq.read_table(path)["text"].to_pylist()]


def test_a_source_is_stored_once(ledger: Ledger) -> None:
    """Also by a later compaction and another run; rows refer to it, views show it."""
    ledger.append(long(3))
    ledger.append(replace(long(0), run_id="other"))
    gather(ledger.root)
    assert sorted(stored(ledger)) == sorted({LONG, LONG * 2, LONG * 3, "short"})
    for volume in (ledger.root / "iterations").rglob("volume-*"):
        assert LONG[:30].encode() not in volume.read_bytes()
    assert query(ledger.root, "SELECT DISTINCT source FROM iterations").to_pylist() == [
        {"source": LONG}
    ]
    (asked,) = query(ledger.root, "SELECT prompt, reply, reasoning FROM llm_calls").to_pylist()
    assert asked == {"prompt": LONG * 2, "reply": LONG * 3, "reasoning": "short"}


def test_packed_records_come_back_to_the_byte(ledger: Ledger) -> None:
    """What a resumed loop reads is what was recorded, raw samples included."""
    assert ledger.history(*PAIR) == tuple(long(n) for n in range(3))
    assert ledger.calls(key(0)) == [call(prompt=LONG * 2, reply=LONG * 3, reasoning="short")]
    (volume,) = (ledger.root / "iterations").rglob("volume-*")
    for record in pq.read_table(volume)["record"].to_pylist():
        assert record.startswith(texts.MARK)
        assert '"samples_us": {"$samples": "full"}' in record


@pytest.mark.parametrize(
    "awkward",
    [
        '{"$text": "0123456789abcdef"}' * 10,
        "\ud800 lone" * 100,
        "\\" * 300 + '"',
        "x" * texts.LONG,
        "",
        '", "samples_us": [1.0], "' * 20,
    ],
)
def test_awkward_texts_survive(tmp_path: Path, awkward: str) -> None:
    """Whatever a model or a compiler says is no reference and no JSON of ours."""
    step = replace(long(0), reason=awkward, calls=(call(reply=awkward),))
    ledger = Ledger(tmp_path)
    ledger.append(step)
    gather(tmp_path)
    assert ledger.history(*PAIR) == (step,)


def test_a_record_with_a_key_like_ours_stays_whole(tmp_path: Path) -> None:
    """An advice may have any parameters."""
    step = long(0)
    assert step.advice is not None
    step = replace(step, advice=replace(step.advice, parameters={"$text": "0123456789abcdef"}))
    ledger = Ledger(tmp_path)
    ledger.append(step)
    gather(tmp_path)
    assert ledger.history(*PAIR) == (step,)


def test_a_record_whose_timings_differ_keeps_its_samples() -> None:
    """Samples are taken out only where the timings hold the very same."""
    record = to_json(rich())
    held: dict[str, str] = {}
    for samples in ({"full": [1.5, 2.25]}, {"small": [1.5, 2.5]}, {}):
        short = texts._short(record, samples, held)
        assert texts.whole(short, held, samples) == record
        assert "$samples" not in short


def test_lost_texts_cost_their_records_alone(
    ledger: Ledger, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns are still answered, the check says what is lost, other steps stay in the history."""
    ledger.append(plain(7))
    for path in texts_of(ledger):
        path.write_bytes(path.read_bytes()[:-20])
    with caplog.at_level(logging.WARNING):
        assert [i.move.step for i in ledger.history(*PAIR)] == [7]
    assert "is lost" in caplog.text
    assert query(ledger.root, "SELECT count(speedup) AS n FROM iterations").to_pylist() == [
        {"n": 3}
    ]
    assert run(["ledger", "check", "--runs", str(ledger.root)]) == 1
    said = capsys.readouterr().err
    assert "texts are lost" in said
    assert "set aside" in said


def test_lost_timings_cost_raw_samples_alone(ledger: Ledger) -> None:
    """The figures of a timing stand in the record too."""
    shutil.rmtree(ledger.root / "timings")
    first, *_ = ledger.history(*PAIR)
    assert first.run is not None
    assert [t.ratio for t in first.run.timings] == [2.0, 2.0]
    assert first.run.timings[0].samples_us == ()


def test_a_ledger_of_version_3_stays_readable(tmp_path: Path) -> None:
    """Its volume, its pair file and its single step answer as they did, before and after."""
    root = tmp_path / "runs"
    shutil.copytree(VERSION3, root)
    ledger = Ledger(root)
    expected = (rich(0), confirmed(1, 1.5), confirmed(2, 2.5), confirmed(3, 1.25))
    sources = "SELECT source, record FROM iterations ORDER BY step"
    before = query(root, sources).to_pylist()
    for _ in range(2):
        assert ledger.history(*PAIR) == expected
        assert ledger.calls(key(0)) == [call(prompt="Write relu. " * 40)]
        assert ledger.calls(key(3)) == [call(reply="again")]
        assert [r["source"] for r in query(root, sources).to_pylist()] == [
            r["source"] for r in before
        ]
        gather(root)
    assert len(before) == 4
    assert [(s.doubles, s.broken, s.lost) for s in check(root)] == [(0, 0, 0)] * 4


def test_merge_takes_texts_along(ledger: Ledger, tmp_path: Path) -> None:
    """A ledger that took volumes in has their sources too."""
    other = tmp_path / "other"
    Ledger(other).append(plain(9))
    assert run(["ledger", "merge", str(ledger.root), "--runs", str(other)]) == 0
    assert len(Ledger(other).history(*PAIR)) == 4
    assert check(other)[0].lost == 0
