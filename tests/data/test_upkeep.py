"""A ledger is looked through, taken in and given away without losing a row."""

from pathlib import Path

import duckdb
import pytest

from data.errors import MisuseError
from data.store import Ledger
from data.upkeep import check, export, merge
from data.views import query
from data.volumes import gather
from flows.cli import run
from tests.data.ledger_worker import PAIR
from tests.data.samples import confirmed, plain


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "runs")
    for step in range(3):
        made.append(confirmed(step, 1.5))
    return made


def test_check_of_a_sound_ledger_is_exit_0(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every row is counted and nothing is set aside."""
    assert run(["ledger", "check", "--runs", str(ledger.root)]) == 0
    assert "iterations" in capsys.readouterr().out
    assert [(s.table, s.rows, s.doubles, s.broken) for s in check(ledger.root)] == [
        ("iterations", 3, 0, 0),
        ("timings", 3, 0, 0),
        ("llm_calls", 0, 0, 0),
        ("texts", 0, 0, 0),
    ]


def test_damage_inside_a_volume_is_found_and_named(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the footer is whole; other files stay readable, and it is told again next time."""
    gather(ledger.root)
    (volume,) = (ledger.root / "iterations").rglob("volume-*")
    content = bytearray(volume.read_bytes())
    content[4 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4)
    volume.write_bytes(bytes(content))
    ledger.append(plain(7))
    for _ in range(2):
        assert run(["ledger", "check", "--runs", str(ledger.root)]) == 1
        assert volume.name in capsys.readouterr().err
    assert [i.move.step for i in ledger.history(*PAIR)] == [7]


def test_check_counts_what_a_cut_compaction_left(ledger: Ledger) -> None:
    """Doubles are no loss; they are told."""
    left = {p: p.read_bytes() for p in (ledger.root / "iterations").rglob("*.parquet")}
    gather(ledger.root)
    for path, content in left.items():
        path.write_bytes(content)
    assert next(s for s in check(ledger.root) if s.table == "iterations").doubles == 3


def test_merge_takes_what_is_new_and_changes_nothing_there(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twice is once; a foreign file is refused with exit code 1 and left where it is."""
    other = Ledger(tmp_path / "other")
    other.append(confirmed(2, 1.5))
    other.append(confirmed(5, 1.5))
    foreign = other.root / "iterations" / "run" / "x.parquet"
    foreign.write_bytes(b"no parquet")
    done = merge(ledger.root, other.root)
    assert (done.taken, done.known, done.refused) == (2, 2, (foreign,))
    assert len(ledger.history(*PAIR)) == 4
    assert run(["ledger", "merge", str(other.root), "--runs", str(ledger.root)]) == 1
    assert str(foreign) in capsys.readouterr().err
    assert foreign.exists()
    assert len(other.history(*PAIR)) == 2


def test_export_opens_in_any_duckdb(ledger: Ledger, tmp_path: Path) -> None:
    """Rows from volumes and loose files, views and questions; the ledger is no longer needed."""
    gather(ledger.root)
    ledger.append(plain(7))
    out = tmp_path / "out.duckdb"
    export(ledger.root, out)
    (tmp_path / "runs").rename(tmp_path / "gone")
    with duckdb.connect(str(out), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM iterations").fetchall() == [(4,)]
        assert connection.execute("SELECT operators FROM fast_p").fetchall() == [(1,)]
    with pytest.raises(MisuseError, match="there already"):
        export(tmp_path / "gone", out)


def test_compact_is_a_command(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what it did, and all is still answered."""
    assert run(["ledger", "compact", "--runs", str(ledger.root)]) == 0
    assert "6 rows of 6 files" in capsys.readouterr().out
    assert query(ledger.root, "SELECT count(*) AS n FROM best").to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("verb", [["check"], ["compact"], ["export", "x.duckdb"]])
def test_no_ledger_is_misuse(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A typing error in --runs is told in one line and makes no folder."""
    assert run(["ledger", *verb, "--runs", str(tmp_path / "nothere")]) == 2
    assert "no ledger in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
