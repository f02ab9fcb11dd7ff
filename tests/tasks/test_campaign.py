from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import LedgerError, MisuseError
from data.records import Contract, Policy, Settings
from tasks.campaign import Campaign, identify, read_campaign, store_campaign
from tasks.claim import claimed
from tasks.crew import Crew
from tests.agents.fakes import DEVICE, OPERATOR, pair

CAMPAIGN = Campaign(
    run_id="",
    epoch="default",
    runs="runs",
    operators=(OPERATOR,),
    devices=(DEVICE,),
    contract=Contract(),
    settings=Settings(),
    crew=Crew(),
)


def test_the_same_command_has_the_same_run_id() -> None:
    """A second start finds the rows of the first."""
    assert identify(CAMPAIGN) == identify(CAMPAIGN)
    assert identify(CAMPAIGN).run_id


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": "other"},
        {"contract": Contract(policy=Policy.TF32)},
        {"settings": Settings(steps=3)},
        {"settings": Settings(seed=1)},
        {"crew": Crew(kind="llm")},
        {"crew": Crew(models=("m",))},
        {"operators": (replace(OPERATOR, source="class Model: other"),)},
        {"devices": (replace(DEVICE, arch="aarch64"),)},
    ],
)
def test_whatever_a_number_depends_on_starts_afresh(change: dict[str, object]) -> None:
    """No run takes over rows that were measured under other terms."""
    changed = replace(CAMPAIGN, **change)  # type: ignore[arg-type]  # fields of Campaign
    assert identify(changed).run_id != identify(CAMPAIGN).run_id


def test_the_folder_is_no_part_of_the_identity() -> None:
    """A ledger that was moved still resumes."""
    moved = replace(CAMPAIGN, runs="elsewhere")
    assert identify(moved).run_id == identify(CAMPAIGN).run_id


def test_a_flow_reads_what_the_command_stored(tmp_path: Path) -> None:
    """The campaign survives its way through a file."""
    campaign = replace(identify(CAMPAIGN), runs=str(tmp_path))
    assert read_campaign(store_campaign(campaign)) == campaign


def test_an_unwritable_folder_is_one_line(tmp_path: Path) -> None:
    """A file where the folder should be: the error names it and says what to do."""
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(LedgerError, match="choose another --runs"):
        store_campaign(replace(CAMPAIGN, runs=str(tmp_path / "runs")))


def test_two_processes_do_not_port_one_pair(tmp_path: Path) -> None:
    """The second is refused while the first holds the pair, and not afterwards."""
    first, second, third = (claimed(tmp_path, pair()) for _ in range(3))
    with first, pytest.raises(MisuseError, match="another process"), second:
        pass
    with third:
        pass
