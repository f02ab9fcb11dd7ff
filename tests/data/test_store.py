"""The ledger keeps what it was given, whatever happens to processes, files and the disk."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import LedgerError
from data.records import Contract, Device, Mode, Move, Operator, Policy
from data.store import Ledger, folder_of
from data.upkeep import check
from data.volumes import gather
from flows.cli import run
from tests.data.ledger_worker import PAIR, VERBS, storm_operator
from tests.data.samples import CPU, RELU, call, confirmed, key, plain, rich

ROOT = Path(__file__).parents[2]
LONG = [pytest.mark.long, pytest.mark.timeout(3600)]
STEPPED = ("iterations", "timings", "llm_calls")


def start(*arguments: object) -> subprocess.Popen[bytes]:
    """The worker as a process of its own."""
    command = [sys.executable, "-m", "tests.data.ledger_worker", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT)


def steps(ledger: Ledger) -> list[int]:
    return [i.move.step for i in ledger.history(*PAIR)]


def count(ledger: Ledger, view: str) -> int:
    with ledger.connect() as connection:
        ((found,),) = connection.execute(f"SELECT count(*) FROM {view}").fetchall()
    return int(found)


def stored(ledger: Ledger) -> dict[str, list[int]]:
    """The steps in the rows of each table, as files hold them, timings without their step too."""
    sql = "SELECT list(step ORDER BY step) FROM stored.{}"
    with ledger.connect() as connection:
        asked = {t: connection.execute(sql.format(t)).fetchall()[0][0] for t in STEPPED}
    return {table: steps or [] for table, steps in asked.items()}


def written(ledger: Ledger, table: str = "iterations") -> list[Path]:
    return sorted((ledger.root / table).rglob("*.parquet"))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "runs")


def test_empty_ledger_is_empty_history(ledger: Ledger) -> None:
    """Looking at a ledger that does not exist creates nothing and raises nothing."""
    assert ledger.history(*PAIR) == ()
    assert ledger.calls(key()) == []
    ledger.compact(*PAIR)
    assert not ledger.root.exists()


def test_round_trip_is_exact(ledger: Ledger) -> None:
    """A resumed loop sees the very values that were recorded, before and after compaction."""
    recorded = (plain(0), plain(1, candidate=None), rich(3))
    for iteration in recorded:
        ledger.append(iteration)
    assert ledger.history(*PAIR) == recorded
    ledger.compact(*PAIR)
    assert ledger.history(*PAIR) == recorded


def test_history_is_in_step_order(ledger: Ledger) -> None:
    """Order is that of the steps, not of the files or of the clock."""
    for step in (1200, 2, 0, 999):
        ledger.append(plain(step, ended_at=f"2026-01-01T00:00:{50 - step % 50:02d}+00:00"))
    assert steps(ledger) == [0, 2, 999, 1200]


def test_pairs_runs_and_devices_are_apart(ledger: Ledger) -> None:
    """Another run, operator or device never shows in a history."""
    ledger.append(plain(0))
    ledger.append(plain(1, run_id="other"))
    ledger.append(plain(2, operator=Operator(name="relu", source="other")))
    ledger.append(plain(3, device=replace(CPU, name="cpu/2")))
    assert steps(ledger) == [0]
    assert [i.move.step for i in ledger.history("run", RELU.hash, "cpu/2")] == [3]


def test_history_reads_no_other_pair(ledger: Ledger) -> None:
    """A resume costs the pair's files, not the ledger's: another pair's broken file stays put."""
    ledger.append(plain(0))
    broken = ledger.root / "iterations" / folder_of("run", RELU.hash, "gpu") / "x.parquet"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"")
    assert steps(ledger) == [0]
    assert broken.exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../etc", "é%2F", "x" * 400, "a\nb"])
def test_odd_names_stay_inside_the_ledger(ledger: Ledger, name: str) -> None:
    """Runs and devices may be called anything; files stay under the root."""
    odd = plain(0, run_id=name, device=Device(name=name, target="t", vendor="v", arch="a"))
    ledger.append(odd)
    assert ledger.history(name, RELU.hash, name) == (odd,)
    (path,) = written(ledger)
    assert path.resolve().is_relative_to(ledger.root.resolve() / "iterations")
    assert len(path.relative_to(ledger.root).parts) == 4


def test_same_record_twice_is_one_row(ledger: Ledger) -> None:
    """Appending again, also after compaction, doubles neither the step nor its timings."""
    ledger.append(confirmed(0, 1.5))
    ledger.compact(*PAIR)
    ledger.append(confirmed(0, 1.5))
    assert (steps(ledger), count(ledger, "iterations"), count(ledger, "timings")) == ([0], 1, 1)
    ledger.compact(*PAIR)
    assert len(written(ledger)) == 1


def test_compaction_of_what_is_merged_keeps_it(ledger: Ledger) -> None:
    """Merging a double into a merged file gives the same file, and it stays."""
    for step in (0, 1):
        ledger.append(confirmed(step, 1.5))
    ledger.compact(*PAIR)
    ledger.append(confirmed(1, 1.5))
    ledger.compact(*PAIR)
    assert steps(ledger) == [0, 1]
    assert len(written(ledger)) == 1


def test_step_done_twice_counts_once(ledger: Ledger) -> None:
    """Two processes that did the same step leave one: the earlier end, with its own timings."""
    late = confirmed(0, 3.0, ended_at="2026-01-01T09:00:00+00:00")
    early = confirmed(0, 1.5, ended_at="2026-01-01T08:00:00+00:00")
    ledger.append(late)
    ledger.append(early)
    ledger.compact(*PAIR)
    assert ledger.history(*PAIR) == (early,)
    with ledger.connect() as connection:
        assert connection.execute("SELECT ratio FROM timings").fetchall() == [(1.5,)]
        assert connection.execute("SELECT speedup FROM iterations").fetchall() == [(1.5,)]


def test_contracts_and_lineages_are_steps_of_their_own(ledger: Ledger) -> None:
    """The same step number under another contract or lineage is another step."""
    ledger.append(plain(0))
    ledger.append(plain(0, contract=Contract(policy=Policy.TF32)))
    ledger.append(plain(0, move=Move(mode=Mode.CREATE, step=0, lineage="b")))
    assert len(ledger.history(*PAIR)) == 3


def test_paid_reply_is_found_again(ledger: Ledger) -> None:
    """A resumed step finds its calls in order, after compaction too, and no other step's."""
    replies = [call(reply=f"reply {n}") for n in range(3)]
    for reply in replies:
        ledger.append_call(key(4), reply)
    ledger.append_call(key(4, "analyst"), call(role="analyst"))
    ledger.append_call(key(5), call(reply="other"))
    ledger.compact(*PAIR)
    ledger.append_call(key(4), call(reply="\ud800 lone"))
    assert ledger.calls(key(4)) == [*replies, call(reply="\ud800 lone")]
    assert len(ledger.calls(key(4, "analyst"))) == 1


def test_equal_replies_are_two_payments(ledger: Ledger) -> None:
    """A model that says the same twice was paid twice."""
    ledger.append_call(key(), call())
    ledger.append_call(key(), call())
    assert count(ledger, "llm_calls") == 2


def test_compaction_leaves_one_file_a_table(ledger: Ledger) -> None:
    """Compacting is idempotent and keeps every row of every table."""
    for step in range(5):
        ledger.append(confirmed(step, 1.5))
        ledger.append_call(key(step), call())
    ledger.compact(*PAIR)
    once = [
        p.name for table in ("iterations", "timings", "llm_calls") for p in written(ledger, table)
    ]
    ledger.compact(*PAIR)
    again = [
        p.name for table in ("iterations", "timings", "llm_calls") for p in written(ledger, table)
    ]
    assert len(once) == 3
    assert once == again
    assert [count(ledger, v) for v in ("iterations", "timings", "llm_calls")] == [5, 5, 5]


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    whole = path.parent / "whole"
    pq.write_table(pa.table({"a": list(range(1000))}), whole)
    path.write_bytes(whole.read_bytes()[:-100])
    whole.unlink()


def _foreign(path: Path) -> None:
    pq.write_table(pa.table({"name": ["relu"], "code": ["x"]}), path)


def _text(path: Path) -> None:
    path.write_text("PAR1 no parquet PAR1")


def _wrong_types(path: Path) -> None:
    good = next(path.parent.glob("step-*.parquet"))
    table = pq.read_table(good)
    at = table.schema.get_field_index("step")
    pq.write_table(table.set_column(at, "step", pa.array(["not a number"])), path)


def _damaged(path: Path) -> None:
    content = bytearray(next(path.parent.glob("step-*.parquet")).read_bytes())
    content[4:1500] = b"\xff" * 1496
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("spoil", [_empty, _cut, _foreign, _text, _wrong_types, _damaged])
def test_broken_file_is_set_aside_and_hides_nothing(
    ledger: Ledger, spoil: object, caplog: pytest.LogCaptureFixture
) -> None:
    """One bad file among good ones moves to set-aside/ with a warning; all good rows stay."""
    ledger.append(plain(0))
    ledger.append(plain(1))
    bad = written(ledger)[0].with_name("bad.parquet")
    assert callable(spoil)
    spoil(bad)
    with caplog.at_level(logging.WARNING):
        assert count(ledger, "iterations") == 2
    assert steps(ledger) == [0, 1]
    ledger.compact(*PAIR)
    assert steps(ledger) == [0, 1]
    assert "bad.parquet" in caplog.text
    assert not bad.exists()
    assert [p.name for p in (ledger.root / "set-aside").rglob("*.parquet")] == ["bad.parquet"]


def test_broken_file_that_cannot_be_moved_is_skipped(ledger: Ledger) -> None:
    """Where set-aside/ cannot be made the good rows are still read."""
    ledger.append(plain(0))
    bad = written(ledger)[0].with_name("bad.parquet")
    bad.write_bytes(b"")
    (ledger.root / "set-aside").write_text("in the way")
    assert steps(ledger) == [0]
    assert bad.exists()


def test_dangling_link_does_not_loop(ledger: Ledger) -> None:
    """A name without a file is passed over."""
    ledger.append(plain(0))
    written(ledger)[0].with_name("gone.parquet").symlink_to("nowhere")
    assert steps(ledger) == [0]


def test_rows_of_an_older_version_stay_readable(ledger: Ledger) -> None:
    """Columns and record fields that came later read as unknown."""
    ledger.append(plain(0))
    (path,) = written(ledger)
    table = pq.read_table(path).drop_columns(["isolation", "techniques_detected"])
    record = json.loads(table["record"][0].as_py())
    del record["detected"]
    at = table.schema.get_field_index("record")
    pq.write_table(table.set_column(at, "record", pa.array([json.dumps(record)])), path)
    ledger.append(plain(1))
    assert ledger.history(*PAIR) == (plain(0), plain(1))
    ledger.compact(*PAIR)
    assert count(ledger, "iterations WHERE isolation IS NULL") == 2


def test_compaction_keeps_columns_of_a_newer_version(ledger: Ledger) -> None:
    """What a newer version wrote is read but not rewritten without its columns."""
    for step in range(3):
        ledger.append(plain(step))
    newer = written(ledger)[0]
    table = pq.read_table(newer)
    pq.write_table(table.append_column("later", pa.array(["x"])), newer)
    ledger.compact(*PAIR)
    assert "later" in pq.read_schema(newer).names
    assert steps(ledger) == [0, 1, 2]


def test_record_that_nobody_can_read_is_passed_over(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """A row whose record lacks what we need costs that step, not the history."""
    ledger.append(plain(0))
    ledger.append(plain(1))
    path = written(ledger)[0]
    table = pq.read_table(path)
    at = table.schema.get_field_index("record")
    pq.write_table(table.set_column(at, "record", pa.array(['{"run_id": "run"}'])), path)
    assert steps(ledger) == [1]
    assert "passed over" in caplog.text


def test_file_in_the_way_is_one_clear_line(tmp_path: Path) -> None:
    """A `--runs` that is a file says so and says what to do."""
    taken = tmp_path / "runs"
    taken.write_text("")
    for action in (Ledger(taken).ensure_writable, lambda: Ledger(taken).append(plain(0))):
        with pytest.raises(
            LedgerError, match=r"cannot write the ledger in .*choose another --runs"
        ):
            action()
    with pytest.raises(LedgerError, match=r"cannot read the ledger in .*choose another --runs"):
        Ledger(taken).history(*PAIR)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(ledger: Ledger) -> None:
    for step in range(1000):
        ledger.append(confirmed(step, 1.5))


def test_full_disk_is_one_clear_line_and_loses_nothing(small_disk: Path) -> None:
    """When the disk fills up, all rows that were taken stay, nothing half-written is seen."""
    ledger = Ledger(small_disk / "runs")
    ledger.ensure_writable()
    with pytest.raises(LedgerError) as caught:
        fill(ledger)
    taken = len(steps(ledger))
    assert str(caught.value) == (
        f"cannot write the ledger in {ledger.root}: No space left on device; "
        "free space or choose another --runs"
    )
    assert steps(ledger) == list(range(taken))
    assert taken > 5
    assert count(ledger, "timings") == taken
    assert not list((ledger.root / ".tmp").iterdir())
    assert not (ledger.root / "set-aside").exists()
    with pytest.raises(LedgerError, match="No space left"):
        ledger.ensure_writable()


def test_a_compaction_on_a_full_disk_is_one_clear_line_and_loses_nothing(small_disk: Path) -> None:
    """What could not be gathered stays as it was; with space again it is gathered."""
    ledger = Ledger(small_disk / "runs")
    for step in range(8):
        ledger.append(confirmed(step, 1.5))
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()
    with pytest.raises(LedgerError, match="No space left on device; free space"):
        gather(ledger.root)
    assert steps(ledger) == list(range(8))
    ballast.unlink()
    gather(ledger.root)
    assert steps(ledger) == list(range(8))
    assert count(ledger, "timings") == 8


def test_a_read_only_disk_is_one_clear_line(small_disk: Path) -> None:
    """It is still read and asked; appending and compacting say what to do."""
    ledger = Ledger(small_disk / "runs")
    for step in range(2):
        ledger.append(confirmed(step, 1.5))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for action in (ledger.ensure_writable, lambda: fill(ledger), lambda: gather(ledger.root)):
        with pytest.raises(LedgerError, match=r"Read-only file system; make it a writable folder"):
            action()
    assert steps(ledger) == [0, 1]
    assert count(ledger, "iterations") == 2


def test_several_processes_lose_and_double_nothing(ledger: Ledger) -> None:
    """Three append, one compacts, one reads: what was seen once stays, and once."""
    each = 40
    workers = [start("append", ledger.root, n * each, each) for n in range(3)]
    workers.append(start("compact", ledger.root, 3 * each))
    seen: set[int] = set()
    while any(w.poll() is None for w in workers):
        now = steps(ledger)
        assert len(now) == len(set(now))
        assert seen <= set(now)
        seen = set(now)
        assert count(ledger, "timings") >= len(seen)
    assert [w.returncode for w in workers] == [0, 0, 0, 0]
    assert steps(ledger) == list(range(3 * each))
    assert count(ledger, "iterations") == count(ledger, "timings") == 3 * each
    assert len(written(ledger)) == 1


def test_kill_at_random_moments_loses_nothing(ledger: Ledger, tmp_path: Path) -> None:
    """Killed ten times while it appends and compacts: every step it reported is there, once."""
    log = tmp_path / "log"
    assert start("kill-at-random", ledger.root, log, 10).wait() == 0
    reported = [int(line) for line in log.read_text().splitlines()]
    assert len(reported) == len(set(reported)) >= 10
    found = steps(ledger)
    assert found == list(range(len(found)))
    assert set(reported) <= set(found)
    assert count(ledger, "timings") == len(found)
    assert not (ledger.root / "set-aside").exists()


def weather(folder: Path, each: int) -> None:
    """Eight processes record `each` steps while they and a compaction are killed at random."""
    ledger, logs = Ledger(folder / "runs"), folder / "logs"
    logs.mkdir()
    assert start("storm", ledger.root, logs, 8, each).wait() == 0
    assert [len(log.read_text().splitlines()) for log in logs.iterdir()] == [each] * 8
    for _ in range(2):
        with ledger.connect() as connection:
            found = connection.execute(
                "SELECT operator, count(*), count(DISTINCT step), max(step), count(source),"
                " count(DISTINCT iteration_id) FROM iterations GROUP BY operator ORDER BY operator"
            ).fetchall()
            timed = connection.execute("SELECT count(*) FROM timings").fetchall()
        assert found == [(f"o{n}", each, each, each - 1, each, each) for n in range(8)]
        assert timed == [(8 * each,)]
        assert [(s.broken, s.lost) for s in check(ledger.root)] == [(0, 0)] * 4
        gather(ledger.root)
    history = ledger.history("run", storm_operator(3).hash, "cpu")
    assert [i.move.step for i in history] == list(range(each))


def test_eight_killed_processes_lose_and_double_nothing(tmp_path: Path) -> None:
    """Every row that was acknowledged is there, once, with its source and its timings."""
    weather(tmp_path, 25)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_eight_killed_processes_record_20000_rows(tmp_path: Path) -> None:
    """The same of 20,000 rows."""
    weather(tmp_path, 2500)


def test_a_truncated_file_costs_its_own_row(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cut anywhere, also to nothing: the check names it with exit code 1, all others are there."""
    for step in range(6):
        ledger.append(confirmed(step, 1.5))
    for n, path in enumerate(written(ledger)[:4]):
        content = path.read_bytes()
        path.write_bytes(content[: (0, 3, len(content) // 2, len(content) - 1)[n]])
    assert steps(ledger) == [4, 5]
    assert count(ledger, "timings") == 2
    assert run(["ledger", "check", "--runs", str(ledger.root)]) == 1
    assert capsys.readouterr().err.count("step-00") == 4


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=LONG)])
def test_kill_before_any_system_call_loses_nothing(
    ledger: Ledger, tmp_path: Path, every: int
) -> None:
    """Killed before each call that changes the disk, one after another: never lost or doubled.

    Of the many of a whole compaction it is each fifth, or each.
    """
    for step in range(3):
        ledger.append(confirmed(step, 1.5))
        ledger.append_call(key(step), call())
    places = tmp_path / "places"
    assert start("kill-everywhere", ledger.root, places, every).wait() == 0
    counts = dict.fromkeys(VERBS, 0)
    for place in places.iterdir():
        verb = place.name.partition("-")[0]
        counts[verb] += 1
        left = Ledger(place)
        found, before, after = stored(left), [0, 1, 2], [0, 1, 2, 3]
        assert steps(left) == found["iterations"]
        assert found["iterations"] in (before, after if verb == "append" else [])
        assert found["timings"] in (found["iterations"], after if verb == "append" else [])
        assert found["llm_calls"] in (before, after if verb == "call" else [])
        assert not (place / "set-aside").exists()
    assert all(n > 5 for n in counts.values()), counts
