"""A night that was cut is finished the next night; one that ended is followed by a new one."""

from datetime import date
from pathlib import Path

import pytest

from tasks.asked import Asked
from tasks.campaign import end
from tasks.nights import tonight

RELU = "class Model: ...\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"
MONDAY = date(2026, 11, 30)
TUESDAY = date(2026, 12, 1)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    (tmp_path / "relu.py").write_text(RELU)
    return Asked(operators=(str(tmp_path / "relu.py"),), runs=str(tmp_path / "runs"), epoch="night")


def test_a_cut_night_goes_on(asked: Asked) -> None:
    """The same run id: what is on record is not done again."""
    first = tonight(asked, MONDAY)
    assert first.epoch == "2026-11-30"
    assert tonight(asked, TUESDAY) == first


def test_after_a_night_that_ended_comes_a_new_one(asked: Asked) -> None:
    """All pairs came to their end: the next night starts afresh."""
    first = tonight(asked, MONDAY)
    end(first)
    second = tonight(asked, TUESDAY)
    assert second.epoch == "2026-12-01"
    assert second.run_id != first.run_id


def test_another_campaign_is_not_gone_on_with(asked: Asked) -> None:
    """More steps are another campaign, whatever was cut before."""
    from dataclasses import replace

    tonight(asked, MONDAY)
    assert tonight(replace(asked, steps=5), TUESDAY).epoch == "2026-12-01"


def test_a_night_is_given_up_after_a_week(asked: Asked) -> None:
    """A pair whose machine never comes back keeps no new night from starting."""
    tonight(asked, MONDAY)
    assert tonight(asked, date(2026, 12, 8)).epoch == "2026-12-08"


def test_a_named_epoch_is_taken_as_it_is(asked: Asked) -> None:
    """Only the words `date` and `night` mean a day."""
    from dataclasses import replace

    assert tonight(replace(asked, epoch="v2"), MONDAY).epoch == "v2"
    assert tonight(replace(asked, epoch="date"), TUESDAY).epoch == "2026-12-01"
