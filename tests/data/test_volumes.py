"""Gathering all pairs into volumes loses and doubles nothing, whenever it is cut."""

import logging
import shutil
from pathlib import Path
from random import Random

import pytest

from data import superseded
from data.errors import MisuseError
from data.records import Operator
from data.store import Ledger
from data.upkeep import check
from data.views import VIEWS, query, question, questions
from data.volumes import gather
from tests.data.ledger_worker import PAIR
from tests.data.samples import RELU, call, confirmed, key, rich

GEMM = Operator(name="gemm", source="class Model: gemm")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Two pairs with timings, the first with calls too."""
    made = Ledger(tmp_path / "runs")
    for step in range(3):
        made.append(confirmed(step, 1.5))
        made.append(confirmed(step, 2.5, operator=GEMM))
        made.append_call(key(step), call())
    return made


def counts(ledger: Ledger) -> dict[str, int]:
    sql = "SELECT count(*) AS n FROM {}"
    views = [v for v in VIEWS if v != "texts"]
    return {v: query(ledger.root, sql.format(v)).to_pylist()[0]["n"] for v in views}


def parquet(ledger: Ledger) -> list[Path]:
    """All files but those of long texts."""
    found = sorted(ledger.root.rglob("*.parquet"))
    return [p for p in found if p.relative_to(ledger.root).parts[0] != "texts"]


def test_volumes_hold_what_the_pairs_held(ledger: Ledger) -> None:
    """Histories, calls and answers are the same before and after, and again."""
    ledger.append(rich(3))
    before = (ledger.history(*PAIR), ledger.calls(key(1)), counts(ledger))
    answers = [query(ledger.root, question(name)) for name in questions()]
    assert gather(ledger.root).rows == 7 + 8 + 3
    assert len(parquet(ledger)) == 3
    assert gather(ledger.root).files == 0
    assert (ledger.history(*PAIR), ledger.calls(key(1)), counts(ledger)) == before
    assert [query(ledger.root, question(name)) for name in questions()] == answers


def test_a_pair_goes_on_after_it_was_gathered(ledger: Ledger) -> None:
    """Later steps lie beside the volume until they are gathered too; a double stays one row."""
    gather(ledger.root)
    ledger.append(confirmed(2, 1.5))
    ledger.append(confirmed(3, 1.5))
    assert len(ledger.history(*PAIR)) == 4
    assert counts(ledger)["timings"] == 7
    gather(ledger.root)
    assert len(ledger.history(*PAIR)) == 4
    assert counts(ledger)["iterations"] == counts(ledger)["timings"] == 7


def test_a_cut_after_the_volume_was_written_doubles_nothing(ledger: Ledger) -> None:
    """Files that a killed compaction left beside their volume count once, and go the next time."""
    left = {path: path.read_bytes() for path in parquet(ledger)}
    gather(ledger.root)
    for path, content in left.items():
        path.write_bytes(content)
    assert counts(ledger)["timings"] == counts(ledger)["iterations"] == 6
    assert len(ledger.history(*PAIR)) == 3
    assert gather(ledger.root).rows == 0
    assert len(parquet(ledger)) == 3
    assert counts(ledger)["llm_calls"] == 3


def test_a_damaged_volume_hides_no_other(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    """It moves to set-aside/ with a warning; what else is there is answered."""
    gather(ledger.root)
    bad = next((ledger.root / "iterations" / "run").glob("volume-*"))
    bad.with_name("volume-bad.parquet").write_bytes(bad.read_bytes()[:-50])
    with caplog.at_level(logging.WARNING):
        assert counts(ledger)["iterations"] == 6
    assert "volume-bad.parquet" in caplog.text
    assert (ledger.root / "set-aside/iterations/run/volume-bad.parquet").exists()


def test_a_query_survives_damage_inside_a_volume(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """The footer is whole, the pages are not: the volume is set aside and the others answer."""
    gather(ledger.root)
    ledger.append(confirmed(7, 1.5))
    (bad,) = (ledger.root / "iterations" / "run").glob("volume-*")
    content = bytearray(bad.read_bytes())
    content[4 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4)
    bad.write_bytes(bytes(content))
    with caplog.at_level(logging.WARNING):
        assert query(ledger.root, "SELECT step FROM iterations").to_pylist() == [{"step": 7}]
    assert bad.name in caplog.text


@pytest.mark.parametrize("seed", range(8))
def test_the_check_sees_any_changed_byte(ledger: Ledger, seed: int) -> None:
    """Checksums of pages, Arrow's and DuckDB's reading of the rest: a changed value is told."""
    gather(ledger.root)
    (bad,) = (ledger.root / "iterations" / "run").glob("volume-*")
    pages = bytearray(bad.read_bytes())
    pages[Random(seed).randrange(60, len(pages) // 2)] ^= 0x55
    answer = "SELECT * EXCLUDE (schema_version) FROM iterations ORDER BY iteration_id"
    before = query(ledger.root, answer)
    bad.write_bytes(bytes(pages))
    sound = not any(s.broken for s in check(ledger.root))
    assert not sound or query(ledger.root, answer) == before


def test_sql_reads_no_other_file_beside_volumes(ledger: Ledger) -> None:
    """That volumes are read in place opens no door."""
    gather(ledger.root)
    (ledger.root / "secret").write_text("s3cret")
    for sql in (f"FROM read_text('{ledger.root}/secret')", f"COPY best TO '{ledger.root}/x'"):
        with pytest.raises(MisuseError):
            query(ledger.root, sql)
    assert not (ledger.root / "x").exists()


def test_a_quote_in_the_folder_is_no_sql(tmp_path: Path) -> None:
    """A ledger may lie anywhere."""
    ledger = Ledger(tmp_path / "it's; DROP TABLE x")
    ledger.append(confirmed(0, 1.5))
    gather(ledger.root)
    assert counts(ledger)["best"] == 1
    assert len(ledger.history("run", RELU.hash, "cpu")) == 1


def doubled(ledger: Ledger) -> int:
    """How many of step 0 the views show: it was recorded at 1.5 first, at 9.9 later."""
    rows = query(ledger.root, "SELECT speedup FROM iterations WHERE step = 0").to_pylist()
    assert [row["speedup"] for row in rows] == [1.5]
    return len(rows)


@pytest.mark.parametrize("large", [0, 10**9])
def test_a_second_record_of_a_step_counts_once_wherever_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """In no volume, beside one, and in two, whether what was found in volumes is kept or not."""
    ledger = Ledger(tmp_path)
    monkeypatch.setattr(superseded, "LARGE_BYTES", large)
    late = "2026-01-09T00:00:00+00:00"
    ledger.append(confirmed(0, 1.5))
    ledger.append(confirmed(1, 1.1))
    gather(ledger.root)
    assert doubled(ledger) == 1
    ledger.append(confirmed(0, 9.9, ended_at=late))
    assert doubled(ledger) == doubled(ledger) == 1
    gather(ledger.root)
    assert doubled(ledger) == doubled(ledger) == 1
    kept = list((ledger.root / ".cache").glob("superseded-*"))
    assert len(kept) == (0 if large else 1)


def test_what_was_kept_of_volumes_may_be_spoilt_or_impossible_to_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut file is made anew; where none can be written the answer is the same."""
    ledger = Ledger(tmp_path)
    monkeypatch.setattr(superseded, "LARGE_BYTES", 0)
    for speedup in (1.5, 9.9):
        ended = f"2026-01-0{speedup:.0f}T00:00:00+00:00"
        ledger.append(confirmed(0, speedup, ended_at=ended))
        gather(ledger.root)
    assert doubled(ledger) == 1
    (kept,) = (ledger.root / ".cache").glob("superseded-*")
    kept.write_text(kept.read_text()[:1])
    assert doubled(ledger) == 1
    shutil.rmtree(ledger.root / ".cache")
    (ledger.root / ".cache").write_text("a file in the way")
    assert doubled(ledger) == 1
