"""The usual search against its arms, on landscapes recorded from ledgers."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.landscape import Landscape, Share, landscapes, recorded
from benchmarks.strategies import compare, unreliable
from data.records import Candidate, Mode, Move, Strategy
from data.store import Ledger
from tests.data.samples import plain

PLAYED = [kind for found in landscapes() for kind in (found, unreliable(found))]


@pytest.mark.parametrize("landscape", PLAYED, ids=lambda found: found.name)
def test_the_usual_search_beats_repeated_sampling(landscape: Landscape) -> None:
    """With sixteen calls the lower bound lies above 1, for reliable and unreliable authors."""
    found = compare(landscape, 16, Strategy.PAIR, Strategy.SAMPLING, games=30)
    assert found.low > 1.0


@pytest.mark.parametrize("landscape", PLAYED, ids=lambda found: found.name)
def test_with_few_calls_it_is_as_good(landscape: Landscape) -> None:
    """Six calls hold three first candidates and one advice: little is won, nothing lost."""
    found = compare(landscape, 6, Strategy.PAIR, Strategy.SAMPLING, games=30)
    assert found.high > 1.0


def test_where_changes_bring_nothing_sampling_is_hardly_better() -> None:
    """The comparison can fail: on a hill that cannot be climbed advice only costs calls."""
    known = landscapes()[0]
    flat = replace(known, name="flat", gains=(0.9,), changed=Share(right=1, tried=20))
    found = compare(flat, 12, Strategy.PAIR, Strategy.SAMPLING, games=30)
    assert 0.9 < found.ratio < 1.0


def test_a_landscape_is_recorded_from_a_ledger(tmp_path: Path) -> None:
    """Speeds of first candidates, gains of advised steps, and how often each was right."""
    ledger = Ledger(tmp_path)
    made = Candidate(source="b", language="cpp", agent_kind="llm", agent_name="m")
    ledger.append(plain(0, speedup=1.5, baseline="eager", candidate=made))
    ledger.append(
        plain(
            1,
            move=Move(mode=Mode.OPTIMISE, step=1, lineage="a"),
            speedup=1.8,
            gain_over_parent=1.2,
            baseline="eager",
        )
    )
    found = recorded("mine", [tmp_path])
    assert [(h.operator, h.speed) for h in found.hills] == [("relu", 1.5)]
    assert found.gains == (1.2,)
    assert (found.created, found.changed) == (Share(right=1, tried=1), Share(right=1, tried=1))


def test_noise_of_the_clock_is_no_spread_of_the_kernels(tmp_path: Path) -> None:
    """Two speeds that differ by less than their intervals say nothing of different kernels."""
    ledger = Ledger(tmp_path)
    for n, (speed, width) in enumerate(((1.5, 2.0), (1.6, 2.0))):
        made = Candidate(source=f"b{n}", language="cpp", agent_kind="llm", agent_name="m")
        bounds = {"speedup_low": speed / width, "speedup_high": speed * width}
        ledger.append(plain(n, speedup=speed, baseline="eager", candidate=made, **bounds))
    found = recorded("mine", [tmp_path])
    assert found.spread == 0.0
    assert found.noise == pytest.approx(math.log(2.0) / 4.303, rel=0.01)
    assert recorded("mine", [tmp_path], "another").hills == ()
