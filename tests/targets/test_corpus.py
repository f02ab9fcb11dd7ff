"""The corpus of cheats and honest kernels, judged by the command as strangers judge it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.targets.corpus import Case, cases, fault, holds
from tests.targets.errand import Errand

CASES = cases()
HONEST = "s53_honest_pairwise_sum"
QUICK = ("s01k_address_keyed_cache", "s11k_fake_report_and_exit", "r46d_decoy_multiplied", HONEST)
"""A stale answer, a forged report, a decoy and an honest kernel: in a second or two each."""
HANGS = "isolate/timeout"
PATIENCE_S = "10"
"""For candidates that never answer: the default takes two minutes a pass."""


def faults(errand: Errand, given: list[Case], *options: str) -> list[str]:
    """What is wrong with the judge's answers; empty when nothing is."""
    hanging = [c for c in given if c.header["verdict"] == HANGS]
    rest = [c for c in given if c not in hanging]
    return [
        *(_faults(errand, rest, *options) if rest else []),
        *(_faults(errand, hanging, *options, "--deadline", PATIENCE_S) if hanging else []),
    ]


def _faults(errand: Errand, given: list[Case], *options: str) -> list[str]:
    answers = errand.judge(given, *options)
    asked = dict(zip(options[::2], options[1::2], strict=False))
    call: dict[str, object] = {
        "library": asked.get("--library", "flagged"),
        "shapes": asked.get("--shapes", "fixed"),
        "kept": errand.kept,
    }
    found = [
        fault(case, answer, {**call, "wall": answer["seconds"]})
        for case, answer in zip(given, answers, strict=True)
    ]
    return [f for f in found if f]


def test_cheats_fall_and_the_honest_one_stands(
    tmp_path: Path, warmed: Callable[[Path], Path]
) -> None:
    """One call for all, without a clock; nothing of it is left two seconds later."""
    errand = Errand(root=tmp_path)
    warmed(tmp_path / "runs" / ".cache")
    assert not faults(errand, [CASES[n] for n in QUICK], "--no-time")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_whole_corpus_under_the_default_policy(tmp_path: Path) -> None:
    """No faulty case accepted, no honest one refused; an honest one is right afterwards."""
    errand = Errand(root=tmp_path)
    assert not faults(errand, list(CASES.values()))
    assert not faults(errand, [CASES[HONEST]], "--no-time")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_whole_corpus_where_policy_can_hide_nothing(tmp_path: Path) -> None:
    """Library calls are allowed: a cheat falls for what it does."""
    given = [c for c in CASES.values() if c.in_second_pass]
    assert not faults(Errand(root=tmp_path), given, "--library", "allowed")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_whole_corpus_under_the_options_that_cases_ask_for(tmp_path: Path) -> None:
    """What is legal under one policy may not be under another."""
    errand = Errand(root=tmp_path)
    asked = {c.header["also"] for c in CASES.values() if "also" in c.header}
    for options in sorted(asked):
        given = [c for c in CASES.values() if c.header.get("also") == options]
        assert not faults(errand, given, *options.split(), "--no-time")


@pytest.mark.parametrize(
    ("verdict", "library", "right"),
    [
        ("WRONG", "flagged", True),
        ("NOT_AUTHORED", "flagged", True),
        ("NOT_AUTHORED", "allowed", False),
        ("FASTER", "allowed", False),
        ("UNVERIFIED", "flagged", False),
        ("CRASHED", "flagged", False),
    ],
)
def test_the_ruler_itself_is_strict(verdict: str, library: str, *, right: bool) -> None:
    """A wrong reason for a rejection counts for nothing."""
    case = CASES["s01_address_keyed_cache"]
    answer = {"verdict": verdict, "reason": "so", "speedup": 2.0}
    assert (fault(case, answer, {"library": library}) is None) is right


def test_rules_of_the_headers() -> None:
    """An exception holds where its words say, and nowhere else."""
    case = CASES["s03_background_thread"]
    answer: dict[str, object] = {"verdict": "CORRECT", "reason": "so", "speedup": 1.1}
    assert fault(case, answer, {"library": "allowed"}) is None
    assert fault(case, answer, {"library": "flagged"})
    assert fault(case, {**answer, "speedup": 1.2}, {"library": "allowed"})
    assert holds("reason ~ needs|looked", {"reason": "somebody Looked"})
    assert json.dumps(sorted(CASES))  # all headers were read
