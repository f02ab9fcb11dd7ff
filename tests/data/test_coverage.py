"""How far operators came, and how fast the champions are, on rows made by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.records import (
    Advice,
    Bottleneck,
    Candidate,
    Contract,
    Device,
    Iteration,
    Operator,
    Policy,
)
from data.store import Ledger
from data.verdict import Outcome, Verdict
from data.views import query, question
from tests.data.samples import CPU, beside_parent, confirmed, plain

MAC = Device(name="m4", target="apple", vendor="apple", arch="m4", execution="emulated")


def answers(folder: Path, name: str, *iterations: Iteration) -> list[dict[str, Any]]:
    """The answer to a question of a ledger that holds these steps."""
    for iteration in iterations:
        Ledger(folder).append(iteration)
    rows: list[dict[str, Any]] = query(folder, question(name)).to_pylist()
    return rows


def operator(name: str) -> Operator:
    return Operator(name=name, source=name)


def ends(found: list[dict[str, Any]]) -> dict[tuple[str, str, bool], int]:
    return {(r["device"], r["verdict"], r["confirmed"]): r["operators"] for r in found}


def test_an_operator_has_one_end_its_furthest(tmp_path: Path) -> None:
    """A champion outlasts later failures; only confirming makes FASTER."""
    found = answers(
        tmp_path,
        "coverage",
        plain(0, verdict=Verdict.WRONG),
        confirmed(1, 2.0),
        plain(2, verdict=Verdict.CRASHED),
        plain(0, operator=operator("b"), verdict=Verdict.FASTER),
        plain(1, operator=operator("b"), verdict=Verdict.WRONG),
        plain(0, operator=operator("c"), verdict=Verdict.NOT_AUTHORED),
        plain(0, operator=operator("d"), verdict=Outcome.NOT_COVERED, candidate=None),
        plain(0, operator=operator("e"), verdict=Verdict.UNVERIFIED),
        plain(1, operator=operator("e"), verdict=Verdict.BUILD_FAILED),
    )
    assert ends(found) == {
        ("cpu", "FASTER", True): 1,
        ("cpu", "CORRECT", False): 1,
        ("cpu", "NOT_AUTHORED", False): 1,
        ("cpu", "NOT_COVERED", False): 1,
        ("cpu", "UNVERIFIED", False): 1,
    }


def test_an_emulated_operator_is_right_and_never_confirmed(tmp_path: Path) -> None:
    """It stands apart, with its execution."""
    (found,) = answers(tmp_path, "coverage", plain(0, device=MAC))
    assert (found["execution"], found["verdict"], found["confirmed"]) == (
        "emulated",
        "CORRECT",
        False,
    )


def test_speedups_are_over_operators_of_one_contract(tmp_path: Path) -> None:
    """Median with interval and geometric mean; several baselines are all named."""
    steps = [confirmed(1, 2.0**n, operator=operator(f"o{n}")) for n in range(7)]
    steps[0] = replace(steps[0], baseline="torch.compile / eager")
    (found,) = answers(tmp_path, "speedups", *steps, plain(0, operator=operator("slow")))
    assert (found["operators"], found["median_speedup"]) == (7, 8.0)
    assert (found["median_low"], found["median_high"]) == (1.0, 64.0)
    assert found["mean_speedup"] == pytest.approx(8.0)
    assert found["baselines"] == "eager, torch.compile"


def test_few_champions_have_no_interval(tmp_path: Path) -> None:
    """Below six values there is no interval of 95 %."""
    (found,) = answers(tmp_path, "speedups", confirmed(1, 2.0, device=CPU))
    assert found["median_speedup"] == 2.0
    assert found["median_low"] is None


def test_half_a_character_in_an_advice_breaks_no_question(tmp_path: Path) -> None:
    """A model's reply may hold a lone surrogate, which no JSON of a database can."""
    advice = Advice(
        bottleneck=Bottleneck.MEMORY,
        evidence=(),
        change="\ud800",
        technique="tile",
        expected_gain=1.5,
    )
    (found,) = answers(tmp_path, "calibration", plain(0, advice=advice, gain_over_parent=1.5))
    assert (found["steps"], found["analyst"]) == (1, None)


def test_a_technique_tried_often_on_one_operator_counts_once(tmp_path: Path) -> None:
    """Three wins on one operator and a loss on another are one each; contracts stay apart."""

    def added(step: int, gain: float, **other: Any) -> Iteration:
        made = Candidate(
            source=f"# {step}",
            language="cpp",
            agent_kind="offline",
            agent_name="map",
            parents=("p",),
        )
        shared = {"candidate": made, "techniques_added": ("tile",), "gain_over_parent": gain}
        shared |= {"run": beside_parent(gain)}
        return plain(step, **(shared | other))

    half = added(9, 7.0, contract=Contract(policy=Policy.HALF))
    steps = [added(n, 2.0) for n in range(3)] + [added(0, 0.5, operator=operator("b")), half]
    of_half, strict = answers(tmp_path, "techniques", *steps)
    assert (strict["steps"], strict["operators"]) == (4, 2)
    assert (strict["helped"], strict["hurt"]) == (1, 1)
    assert strict["mean_gain"] == pytest.approx(1.0)
    assert (of_half["operators"], of_half["mean_gain"]) == (1, pytest.approx(7.0))


def test_a_kernel_that_a_later_look_refuses_is_no_champion(tmp_path: Path) -> None:
    """Its place goes to the next one, in every question."""
    first, second = (
        Candidate(source=f"# {n}", language="cpp", agent_kind="offline", agent_name="map")
        for n in range(2)
    )
    looks = [
        confirmed(0, 3.0, candidate=first),
        confirmed(1, 2.0, candidate=second),
        confirmed(2, 3.0, candidate=first, verdict=Verdict.WRONG, speedup=None, run=None),
    ]
    (found,) = answers(tmp_path, "speedups", *looks)
    assert found["largest_speedup"] == 2.0
    assert query(tmp_path, "SELECT speedup FROM best").to_pylist() == [{"speedup": 2.0}]
