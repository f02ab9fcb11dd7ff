"""The usual search against its arms, on landscapes recorded from ledgers."""

from pathlib import Path

import pytest

from benchmarks.strategies import Landscape, Share, compare, landscapes, recorded
from data.records import Candidate, Mode, Move, Strategy
from data.store import Ledger
from tests.data.samples import plain


@pytest.mark.parametrize("landscape", landscapes(), ids=lambda found: found.name)
def test_the_usual_search_beats_repeated_sampling(landscape: Landscape) -> None:
    """At twelve calls and more the lower bound lies above 1: refining pays."""
    found = compare(landscape, 16, Strategy.PAIR, Strategy.SAMPLING, games=12)
    assert found.low > 1.0


def test_where_changes_bring_nothing_sampling_is_as_good() -> None:
    """The comparison can fail: on a hill that cannot be climbed advice only costs calls."""
    known = landscapes()[0]
    flat = Landscape(
        name="flat",
        hills=known.hills,
        gains=(0.9,),
        created=known.created,
        mended=known.mended,
        changed=Share(right=1, tried=20),
    )
    found = compare(flat, 12, Strategy.PAIR, Strategy.SAMPLING, games=12)
    assert found.ratio < 1.0


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
    assert [(h.operator, h.first) for h in found.hills] == [("relu", (1.5,))]
    assert found.gains == (1.2,)
    assert (found.created, found.changed) == (Share(right=1, tried=1), Share(right=1, tried=1))
