"""Made-up rows never stand among measurements."""

from dataclasses import replace
from pathlib import Path

import pytest

from data import simulated, views
from data.errors import LedgerError
from data.store import Ledger
from data.upkeep import merge
from tests.data.samples import CPU, confirmed

SIM = replace(CPU, name="sim-0", execution="simulated")


def test_a_made_up_row_is_refused_by_a_true_ledger(tmp_path: Path) -> None:
    """Nothing is written; the message says where such rows go."""
    with pytest.raises(LedgerError, match="sim-0 is simulated"):
        Ledger(tmp_path).append(confirmed(0, 2.0, device=SIM))
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_measurement_is_refused_among_made_up_rows(tmp_path: Path) -> None:
    """Nobody looks for it there."""
    simulated.mark(tmp_path)
    with pytest.raises(LedgerError, match="made-up rows only"):
        Ledger(tmp_path).append(confirmed(0, 2.0))


def test_made_up_rows_are_the_best_of_nothing(tmp_path: Path) -> None:
    """A marked ledger takes them; no champion is made of them."""
    simulated.mark(tmp_path)
    Ledger(tmp_path).append(confirmed(0, 2.0, device=SIM))
    assert views.query(tmp_path, "FROM iterations").num_rows == 1
    assert views.query(tmp_path, "FROM best").num_rows == 0


def test_ledgers_of_two_kinds_are_not_merged(tmp_path: Path) -> None:
    """Neither way."""
    made_up, true = tmp_path / "made-up", tmp_path / "true"
    simulated.mark(made_up)
    Ledger(made_up).append(confirmed(0, 2.0, device=SIM))
    Ledger(true).append(confirmed(0, 2.0))
    for root, other in ((made_up, true), (true, made_up)):
        with pytest.raises(LedgerError, match="not merged"):
            merge(root, other)
