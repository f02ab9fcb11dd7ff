"""Accepted kernels looked at again: a changed environment, a planted regression, the way back."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from data import views
from data.champions import champions
from data.errors import MisuseError, StandingError
from data.records import (
    Admission,
    BuildResult,
    Candidate,
    Card,
    Contract,
    Device,
    Iteration,
    MeasureJob,
    Operator,
    RunResult,
    RunStatus,
    Shape,
)
from data.store import Ledger
from data.verdict import Outcome, Verdict
from flows.requalify import judge
from targets.remote.jobs import Ask
from targets.remote.peaks import Probe
from tasks.requalify import Terms, places, requalified
from tasks.standing import Place, rows
from tests.data.samples import confirmed, timing

OLD = {"driver": "1", "torch": "2.9"}
NEW = {"driver": "2", "torch": "2.9"}
SHAPE = Shape(name="full", inputs=(), outputs=(), flops=1e6, moved_bytes=8e3, floor_us=1.0)
FAST, SLOW = "# fast", "# slow"


class Bench:
    """A machine in some environment, where each source has the speed-up that is planted."""

    def __init__(self, environment: dict[str, str], speeds: dict[str, float | None]) -> None:
        self.environment, self.speeds = environment, speeds
        self.measured: list[MeasureJob] = []
        self.refuses: Outcome | None = None

    def expect(self, asks: Sequence[Ask]) -> None: ...

    async def probe(self, device: Device) -> Probe:
        return Probe(card=Card(peak_gb_s=1.0), environment=self.environment)

    async def admit(
        self, operator: Operator, contract: Contract, device: Device, *, timed: bool = False
    ) -> Admission:
        return Admission(
            outcome=self.refuses,
            reason="so",
            shapes=(SHAPE,),
            card=Card(peak_gb_s=1.0),
            environment=self.environment,
        )

    async def build(self, operator: Operator, source: str, device: Device) -> BuildResult:
        return BuildResult(ok=True, route="launcher")

    async def measure(self, job: MeasureJob) -> RunResult:
        self.measured.append(job)
        ratio = self.speeds[job.source]
        if ratio is None:
            return RunResult(status=RunStatus.WRONG, detail="17 elements differ")
        return RunResult(status=RunStatus.RAN, authored=True, timings=(timing(ratio=ratio),))

    @asynccontextmanager
    async def turn(self, device: Device) -> AsyncIterator[None]:
        yield


def kernel(step: int, source: str, ratio: float) -> Iteration:
    made = Candidate(source=source, language="cpp", agent_kind="offline", agent_name="map")
    return confirmed(step, ratio, candidate=made, environment=OLD)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Two accepted kernels of one place: the fast one leads."""
    made = Ledger(tmp_path)
    made.append(kernel(0, SLOW, 1.5))
    made.append(kernel(1, FAST, 2.0))
    return made


async def look(ledger: Ledger, bench: Bench, **terms: object) -> Place:
    (kernels,) = places(Terms(runs=ledger.root))
    asked = Terms(runs=ledger.root, epoch="today", **terms)  # type: ignore[arg-type]  # by name
    return await requalified(kernels, kernels[0].device, bench, asked)


def leader(ledger: Ledger) -> tuple[str, float]:
    """What the view `best` shows."""
    (row,) = views.query(ledger.root, "SELECT source, speedup FROM best").to_pylist()
    return row["source"], row["speedup"]


async def test_an_unchanged_environment_asks_for_nothing(ledger: Ledger) -> None:
    """The same hash: nothing is measured, nothing recorded."""
    bench = Bench(OLD, {})
    place = await look(ledger, bench)
    assert not bench.measured
    assert not place.looks
    assert rows((place,))[0]["now"] == "environment unchanged"


async def test_a_changed_driver_has_the_leader_looked_at_like_a_winner(ledger: Ledger) -> None:
    """Hidden draws and interleaved pairs as in a confirming run; the row is of today's driver."""
    bench = Bench(NEW, {FAST: 2.05})
    place = await look(ledger, bench)
    (job,) = bench.measured
    assert (job.source, job.thorough, job.pairs) == (FAST, True, 5)
    assert not place.alarms
    assert leader(ledger) == (FAST, 2.05)
    assert champions(ledger.root)[0].environment == NEW
    judge((place,))


async def test_a_planted_regression_raises_the_alarm(ledger: Ledger) -> None:
    """Slower beyond both intervals: what it was, what it is, and which of the times moved."""
    place = await look(ledger, Bench(NEW, {FAST: 1.7, SLOW: 1.5}))
    (alarm,) = place.alarms
    assert alarm.startswith("relu@cpu: 1.70x over eager now, was 2.00x (kernel 100.0 to 100.0 us")
    assert leader(ledger) == (FAST, 1.7), "still the best there is"
    assert not place.rolled_back
    with pytest.raises(StandingError, match="1 accepted kernels do not hold: relu@cpu"):
        judge((place,))


async def test_a_kernel_that_lost_gives_its_place_back(ledger: Ledger) -> None:
    """Below the earlier champion: that one is looked at too, then leads, also in `best`."""
    bench = Bench(NEW, {FAST: 1.1, SLOW: 1.45})
    place = await look(ledger, bench)
    assert [job.source for job in bench.measured] == [FAST, SLOW]
    assert place.rolled_back
    assert leader(ledger) == (SLOW, 1.45)
    assert len(place.alarms) == 1, "the one that leads now lost no more than its interval"


async def test_a_kernel_that_is_wrong_now_is_champion_no_more(ledger: Ledger) -> None:
    """Wrong numbers with the new driver: the next right kernel leads."""
    place = await look(ledger, Bench(NEW, {FAST: None, SLOW: 1.5}))
    assert place.alarms == ("relu@cpu: WRONG now: 17 elements differ",)
    assert leader(ledger) == (SLOW, 1.5)
    told = rows((place,))
    assert [r["now"] for r in told] == ["WRONG -", "FASTER 1.50x [1.47, 1.53]"]
    assert str(told[-1]["leader"]).endswith("1.50x [1.47, 1.53]")


async def test_none_left_is_said(ledger: Ledger) -> None:
    """All wrong: no kernel leads, and `best` is empty."""
    place = await look(ledger, Bench(NEW, {FAST: None, SLOW: None}))
    assert place.leader is None
    assert rows((place,))[-1]["leader"] == "none is right any more"
    assert views.query(ledger.root, "FROM best").num_rows == 0


async def test_a_look_that_was_cut_is_not_repeated(ledger: Ledger) -> None:
    """The same day again: the ledger holds the row, nothing is measured; also with --all."""
    await look(ledger, Bench(NEW, {FAST: 2.0}))
    again = Bench(NEW, {})
    assert not (await look(ledger, again)).looks
    assert not (await look(ledger, again, every=True)).looks
    assert not again.measured


async def test_all_means_all(ledger: Ledger) -> None:
    """The same environment, but asked for every kernel that leads."""
    bench = Bench(OLD, {FAST: 2.0})
    await look(ledger, bench, every=True)
    assert [job.source for job in bench.measured] == [FAST]


async def test_an_operator_that_is_refused_leaves_its_kernel(ledger: Ledger) -> None:
    """No verdict on the kernel: it keeps its place, and somebody is told."""
    bench = Bench(NEW, {})
    bench.refuses = Outcome.NOT_ADMITTED
    place = await look(ledger, bench)
    assert "not admitted" in place.fault
    assert leader(ledger)[0] == FAST


async def test_each_contract_is_a_place_of_its_own(ledger: Ledger) -> None:
    """A kernel under another contract neither follows nor replaces."""
    from data.records import Policy

    half = replace(kernel(2, "# half", 4.0), contract=Contract(policy=Policy.HALF))
    ledger.append(half)
    found: list[Sequence[Iteration]] = list(places(Terms(runs=ledger.root)))
    assert sorted(len(kernels) for kernels in found) == [1, 2]


async def test_the_question_shows_what_was_lost(ledger: Ledger) -> None:
    """`kforge query requalified`: verdicts before and now, the ratio, whether it counts."""
    await look(ledger, Bench(NEW, {FAST: 1.1, SLOW: None}))
    found = views.query(ledger.root, "FROM requalified ORDER BY speedup NULLS LAST").to_pylist()
    assert [(r["slower"], r["lost"]) for r in found] == [(True, False), (False, True)]
    assert found[0]["ratio"] == pytest.approx(1.1 / 2.0)
    assert found[1]["verdict"] == Verdict.WRONG


def test_an_unknown_name_is_refused(ledger: Ledger) -> None:
    """The message lists what has accepted kernels."""
    with pytest.raises(MisuseError, match="no accepted kernel for 'softmax'; known: relu"):
        places(Terms(runs=ledger.root, operators=("softmax",)))


def test_rows_are_json(ledger: Ledger) -> None:
    """A line a look for machines."""
    place = Place(name="a@cpu", contract="strict", fault="gone")
    assert json.loads(json.dumps(rows((place,))))[0]["now"] == "not looked at: gone"
