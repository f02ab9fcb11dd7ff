"""What may leave the house, and what is said of the rest."""

from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import ExportError, MisuseError
from data.records import Contract, Mode, Move, Policy, RunResult, RunStatus
from data.verdict import Verdict
from tasks.export.chosen import Chosen, Terms, chosen
from tests.data.samples import plain, timing
from tests.tasks.export.ledgers import argmax, kernel, ledger


def asked(runs: Path, *operators: str, **other: object) -> Chosen:
    terms = Terms(runs=runs, devices=("cpu",), operators=operators)
    return chosen(replace(terms, **other))  # type: ignore[arg-type]  # fields by name


def test_a_right_kernel_that_nobody_confirmed_is_refused(tmp_path: Path) -> None:
    """One line names the state of the operator and what is confirmed instead."""
    runs = ledger(tmp_path, argmax(), plain(1))
    with pytest.raises(MisuseError) as told:
        asked(runs, "relu")
    assert "no confirmed kernel for 'relu' on cpu" in str(told.value)
    assert "CORRECT (1)" in str(told.value)
    assert "confirmed there: row_best" in str(told.value)


def test_a_kernel_that_lost_its_standing_is_refused(tmp_path: Path) -> None:
    """What a later look found wrong is not shipped, however fast it was."""
    again = argmax(verdict=Verdict.WRONG, speedup=None, baseline=None, run=None)
    runs = ledger(tmp_path, argmax(), kernel("other", "class Model: 1", "a"), again)
    assert [k.operator.name for k in asked(runs).kernels] == ["other"]


def test_an_unknown_device_names_those_with_kernels(tmp_path: Path) -> None:
    """The way out stands in the line."""
    runs = ledger(tmp_path, argmax())
    with pytest.raises(MisuseError, match=r"no confirmed kernel on 'h200'.*: cpu"):
        asked(runs, devices=("h200",))


def test_a_kernel_of_another_precision_is_not_taken(tmp_path: Path) -> None:
    """A strict package holds no reduced arithmetic."""
    loose = argmax(contract=Contract(policy=Policy.TF32))
    runs = ledger(tmp_path, loose)
    with pytest.raises(MisuseError, match="under strict"):
        asked(runs)
    assert asked(runs, policy=Policy.TF32).kernels


def test_what_needs_review_is_left_out_unless_told(tmp_path: Path) -> None:
    """Nobody has looked at a speed above 10x yet."""
    runs = ledger(tmp_path, argmax(needs_review=True), kernel("other", "class Model: 1", "a"))
    found = asked(runs)
    assert [left.name for left in found.left_out] == ["row_best@cpu"]
    assert "--unreviewed" in found.left_out[0].reason
    with pytest.raises(ExportError, match=r"row_best cannot be exported: .*needs review"):
        asked(runs, "row_best")
    assert len(asked(runs, unreviewed=True).kernels) == 2


def test_a_kernel_that_is_slower_everywhere_is_left_out(tmp_path: Path) -> None:
    """Right, but a regression to whoever installs it."""
    run = RunResult(status=RunStatus.RAN, timings=(timing("full", 0.5),))
    slow = argmax(run=run, verdict=Verdict.CORRECT, speedup=0.5, speedup_low=0.4, speedup_high=0.6)
    with pytest.raises(ExportError, match=r"nothing is left.*slower.*0\.50x \[0\.40, 0\.60\]"):
        asked(ledger(tmp_path, slow))


def test_of_two_texts_of_an_operator_the_latest_is_taken(tmp_path: Path) -> None:
    """A name stands once in a package; its kernel computes what it means today."""
    older = kernel("row_best", "class Model: 'older'", "a", speedup_low=9.0)
    found = asked(ledger(tmp_path, older, argmax()))
    assert [k.operator.source == older.operator.source for k in found.kernels] == [False]


def test_a_step_that_confirms_nothing_does_not_count(tmp_path: Path) -> None:
    """Only mode `confirm` on hardware is a confirmation."""
    only = argmax(move=Move(mode=Mode.OPTIMISE, step=0, lineage="a"))
    with pytest.raises(MisuseError, match="no confirmed kernel"):
        asked(ledger(tmp_path, only))
