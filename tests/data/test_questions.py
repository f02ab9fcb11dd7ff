"""Each further question answers what it says, on rows made by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.records import (
    BuildResult,
    Candidate,
    Iteration,
    Mode,
    Move,
    Operator,
    RunResult,
    RunStatus,
)
from data.store import Ledger
from data.verdict import Verdict
from data.views import query, question
from tests.data.samples import CPU, beside_parent, confirmed, emulated, plain

GPU = replace(CPU, name="gpu", vendor="nvidia")


def asked(folder: Path, name: str, *iterations: Iteration) -> list[dict[str, Any]]:
    """The answer to a question of a ledger that holds these steps."""
    ledger = Ledger(folder)
    for iteration in iterations:
        ledger.append(iteration)
    rows: list[dict[str, Any]] = query(folder, question(name)).to_pylist()
    return rows


def made(source: str, **other: Any) -> Candidate:
    """A candidate in C++."""
    return Candidate(source=source, language="cpp", agent_kind="llm", agent_name="g", **other)


def gained(step: int, tags: tuple[str, ...], gain: float, **other: Any) -> Iteration:
    """A step that was timed beside its parent, the candidate of the step before."""
    child = made(f"# {step}", parents=(made(f"# {step - 1}").id,))
    shared = {
        "move": Move(mode=Mode.OPTIMISE, step=step, lineage="a"),
        "candidate": child,
        "techniques_added": tags,
        "gain_over_parent": gain,
        "speedup": gain,
        "baseline": "eager",
        "run": beside_parent(gain),
    }
    return plain(step, **(shared | other))


def fast(step: int, speedup: float | None, **other: Any) -> Iteration:
    """A timed step without a parent; None: it was not timed."""
    return plain(step, speedup=speedup, baseline="eager" if speedup else None, **other)


def operators(count: int) -> list[Operator]:
    return [Operator(name=f"o{n}", source=f"o{n}", family="norm") for n in range(count)]


def test_an_interval_of_several_shapes_narrows(tmp_path: Path) -> None:
    """Two shapes with the same gain have 1 / sqrt(2) of the width of one."""
    row = gained(1, ("tile",), 1.5)
    assert row.run is not None
    two = replace(row.run, timings=(*row.run.timings, replace(row.run.timings[0], shape="small")))
    (found,) = (
        asked(tmp_path, "best", replace(row, run=two))
        or query(tmp_path, "SELECT low, high, gain, steps FROM effects").to_pylist()
    )
    assert found["low"] == pytest.approx(1.5 * 1.02 ** -(0.5**0.5))
    assert found["high"] == pytest.approx(1.5 * 1.02 ** (0.5**0.5))


def test_several_tags_and_failures_are_no_additions(tmp_path: Path) -> None:
    """Only one tag, timed beside the parent, on hardware, and right."""
    asked(
        tmp_path,
        "best",
        gained(1, ("tile",), 1.5),
        gained(2, ("tile", "unroll"), 1.5),
        gained(3, ("tile",), 1.5, verdict=Verdict.WRONG, speedup=None),
        emulated(gained(4, ("tile",), 1.5)),
        gained(5, ("tile",), 1.5, run=RunResult(status=RunStatus.RAN)),
    )
    assert query(tmp_path, "SELECT step FROM additions").to_pylist() == [{"step": 1}]


def test_kernel_transfer_compares_the_first_step_with_the_champion(tmp_path: Path) -> None:
    """Half of the champion's speed at once; a kernel of the same device is no translation."""
    cuda = made("# cuda")
    move = Move(mode=Mode.TRANSLATE, step=0, lineage="a")
    (found,) = asked(
        tmp_path,
        "kernel_transfer",
        fast(0, 3.0, device=GPU, candidate=cuda, run_id="gpu"),
        fast(0, 1.0, move=move, candidate=made("# c", reference=cuda.id)),
        confirmed(1, 2.0),
        fast(0, 9.0, run_id="own", candidate=made("# d", reference=made("# c").id)),
    )
    assert (found["from_device"], found["to_device"]) == ("gpu", "cpu")
    assert (found["operators"], found["correct_at_once"]) == (1, 1)
    assert found["median_fraction"] == 0.5


def arm(operator: Operator, *, shown: bool, correct: bool, speedup: float) -> list[Iteration]:
    """Two steps of one arm."""
    run = "with" if shown else "without"
    reference = "r" if shown else None
    return [
        fast(
            n,
            speedup if correct else None,
            run_id=run,
            operator=operator,
            candidate=made(f"# {run}{n}", reference=reference),
            verdict=Verdict.CORRECT if correct else Verdict.WRONG,
        )
        for n in range(2)
    ]


def test_reference_transfer_pairs_arms_at_equal_budget(tmp_path: Path) -> None:
    """Only steps within the shorter arm's budget count, and only operators with both arms."""
    steps: list[Iteration] = []
    for operator in operators(9):
        steps += arm(operator, shown=True, correct=True, speedup=2.0)
        steps += arm(operator, shown=False, correct=operator.name != "o0", speedup=1.0)
    late = replace(steps[-1], move=Move(mode=Mode.CREATE, step=2, lineage="a"), speedup=50.0)
    (found,) = asked(tmp_path, "reference_transfer", *steps, late)
    assert (found["operators"], found["median_steps"]) == (9, 2)
    assert (found["solved_with"], found["solved_without"]) == (1.0, pytest.approx(8 / 9))
    assert (found["solved_only_with"], found["solved_only_without"]) == (1, 0)
    assert (found["solved_by_both"], found["median_gain"]) == (8, 2.0)
    assert found["p_faster"] == pytest.approx(2 / 2**8)


def test_head_start_counts_steps_to_the_same_goal(tmp_path: Path) -> None:
    """Shown a kernel, the first step is fast; cold, the second; who never gets there is counted."""
    steps: list[Iteration] = []
    for operator in operators(9):
        warm = arm(operator, shown=True, correct=True, speedup=2.0)
        first, second = arm(operator, shown=False, correct=True, speedup=1.92)
        last = 1.0 if operator.name == "o0" else 1.92
        cold = [replace(first, speedup=1.0), replace(second, speedup=last)]
        steps += [*warm, *cold]
    (found,) = asked(tmp_path, "head_start", *steps)
    assert (found["operators"], found["steps_with"]) == (9, 1.0)
    assert found["steps_without"] == pytest.approx((8 * 2 + 3) / 9)
    assert (found["reached_with"], found["reached_without"]) == (1.0, pytest.approx(8 / 9))
    assert (found["median_share"], found["fewer"], found["more"]) == (0.5, 9, 0)
    assert found["p_fewer"] == pytest.approx(2 / 2**9)


def test_a_kernel_that_leads_astray_costs_steps(tmp_path: Path) -> None:
    """The arm that was shown one stays slow: it never reaches the goal, and no share is below 1."""
    steps: list[Iteration] = []
    for operator in operators(8):
        steps += arm(operator, shown=True, correct=True, speedup=1.0)
        steps += arm(operator, shown=False, correct=True, speedup=2.0)
    (found,) = asked(tmp_path, "head_start", *steps)
    assert (found["median_share"], found["reached_with"], found["more"]) == (3.0, 0.0, 8)


def test_arms_of_two_authors_are_no_pair(tmp_path: Path) -> None:
    """Templates that begin with the plainest are compared with their like, not with the rule's."""
    steps: list[Iteration] = []
    for operator in operators(8):
        steps += arm(operator, shown=True, correct=True, speedup=2.0)
        for row in arm(operator, shown=False, correct=True, speedup=1.0):
            other = row.candidate and replace(row.candidate, model=None, agent_name="plain")
            steps.append(replace(row, candidate=other))
    assert asked(tmp_path, "reference_transfer", *steps) == []


def test_what_to_try_first_ranks_by_shrunk_gain(tmp_path: Path) -> None:
    """Eight operators beat one lucky one; a new device learns from all others."""
    steps = [gained(1, ("tile",), 1.5, operator=o) for o in operators(8)]
    steps += [gained(2, ("unroll",), 9.0, operator=operators(1)[0])]
    steps += [gained(3, ("pack",), 0.5, operator=o) for o in operators(8)]
    found = asked(tmp_path, "what_to_try_first", *steps)
    here = {r["technique"]: r for r in found if r["device"] == "cpu"}
    assert [r["technique"] for r in here.values()] == ["tile", "pack", "unroll"]
    assert (here["tile"]["enough"], here["unroll"]["enough"]) == (True, False)
    assert here["tile"]["expected_gain"] == pytest.approx(1.5 ** (8 / 12))
    assert (here["tile"]["helped_here"], here["pack"]["hurt_here"]) == (8, 8)
    new = next(r for r in found if r["device"] == "(new)")
    assert (new["technique"], new["evidence"], new["operators_elsewhere"]) == (
        "tile",
        "elsewhere",
        8,
    )
    assert new["expected_gain"] == pytest.approx(here["tile"]["expected_gain"])


def test_an_operator_counts_once_whatever_the_number_of_devices(tmp_path: Path) -> None:
    """Five operators on two devices are no eight; helped here and hurt there is neither."""
    steps = [gained(1, ("tile",), 2.0, operator=o) for o in operators(5)]
    steps += [gained(1, ("tile",), 8.0, operator=o, device=GPU) for o in operators(4)]
    steps += [gained(1, ("tile",), 0.5, operator=operators(5)[4], device=GPU)]
    found = {r["device"]: r for r in asked(tmp_path, "what_to_try_first", *steps)}
    new, cpu = found["(new)"], found["cpu"]
    assert not new["enough"]
    assert (new["operators_elsewhere"], new["devices_elsewhere"]) == (5, 2)
    assert (new["helped_elsewhere"], new["hurt_elsewhere"]) == (4, 0)
    assert new["gain_elsewhere"] == pytest.approx((4.0**4 * 1.0) ** (1 / 5))
    assert (cpu["operators_here"], cpu["operators_elsewhere"]) == (5, 5)
    assert (cpu["helped_elsewhere"], cpu["hurt_elsewhere"]) == (4, 1)
    assert cpu["gain_elsewhere"] == pytest.approx((8.0**4 * 0.5) ** (1 / 5))


def test_precision_is_told_apart_from_a_better_kernel(tmp_path: Path) -> None:
    """1.5 at first, times 2 by fusing, times 1.5 by half precision, times 1.2 by tiling."""
    (found,) = asked(
        tmp_path,
        "precision_split",
        fast(0, 1.5, candidate=made("# 0")),
        gained(1, ("fuse_epilogue",), 2.0),
        gained(2, ("low_precision", "tile"), 1.5),
        gained(3, ("tile",), 1.2),
        confirmed(4, 5.4, candidate=made("# 3")),
    )
    assert found["speedup"] == pytest.approx(5.4)
    parts = {name: found[name] for name in ("first", "fusion", "precision", "kernel", "rest")}
    assert parts == pytest.approx(
        {"first": 1.5, "fusion": 2.0, "precision": 1.5, "kernel": 1.2, "rest": 1.0}
    )


def test_failures_know_whether_they_were_mended(tmp_path: Path) -> None:
    """A wrong step before a right one of its lineage is mended; one after it is not."""
    wrong = {"verdict": Verdict.WRONG, "reason": "off by one"}
    (found,) = asked(tmp_path, "failures", plain(0, **wrong), plain(1), plain(2, **wrong))
    assert (found["verdict"], found["family"], found["steps"]) == ("WRONG", "elementwise", 2)
    assert (found["mended"], found["commonest_reason"]) == (0.5, "off by one")


def test_time_to_first_correct_counts_the_unsolved(tmp_path: Path) -> None:
    """Right at the third step of one pair; the other pair never is."""
    wrong = {"verdict": Verdict.BUILD_FAILED}
    steps = [plain(0, **wrong), plain(1, **wrong), plain(2), plain(3)]
    (found,) = asked(tmp_path, "first_correct", *steps, plain(0, operator=operators(1)[0], **wrong))
    assert (found["pairs"], found["solved"], found["median_steps"]) == (2, 1, 3.0)
    assert found["median_seconds"] == 3602.0


def test_utilisation_is_work_over_the_span(tmp_path: Path) -> None:
    """Two steps of a quarter hour each within an hour and a second."""
    run = RunResult(status=RunStatus.RAN, seconds=900.0)
    build = BuildResult(ok=True, route="launcher", seconds=10.0)
    steps = [plain(n, run=run, build=build) for n in range(2)]
    (found,) = asked(tmp_path, "utilisation", *steps)
    assert (found["busy_seconds"], found["span_seconds"]) == (1800.0, 3601.0)
    assert found["utilisation"] == pytest.approx(1800 / 3601)


def test_drift_compares_the_same_kernel_before_and_after(tmp_path: Path) -> None:
    """A driver change that costs a fifth is seen; the same driver again is no change."""
    kernel = made("# k")
    old, new = ({"driver": d, "torch": "2.13"} for d in ("1", "2"))
    steps = [confirmed(0, 2.0, candidate=kernel, environment=old)]
    steps += [confirmed(1, 9.0, candidate=kernel, environment=old)]
    steps += [confirmed(2, 7.2, candidate=kernel, environment=new)]
    (found,) = asked(tmp_path, "drift", *steps)
    assert (found["before"], found["after"]) == ("1, torch 2.13", "2, torch 2.13")
    assert (found["operators"], found["lost_a_tenth"]) == (1, 1)
    assert found["speedup_ratio"] == pytest.approx(0.8)


def test_authors_are_counted_by_how_far_they_got(tmp_path: Path) -> None:
    """An answer without code, one that does not build, a wrong and a fast one are told apart."""
    rows = asked(
        tmp_path,
        "authors",
        plain(0, verdict=Verdict.NO_CODE, candidate=made("", model="m", parse_status="no_code")),
        plain(
            1,
            verdict=Verdict.BUILD_FAILED,
            candidate=made("a", model="m"),
            build=BuildResult(ok=False, route="launcher"),
        ),
        plain(
            2,
            verdict=Verdict.WRONG,
            candidate=made("b", model="m"),
            build=BuildResult(ok=True, route="launcher"),
        ),
        plain(3, candidate=made("c", model="m"), build=BuildResult(ok=True, route="launcher")),
        confirmed(4, 1.5, candidate=made("c", model="m")),
    )
    names = ("author", "pairs", "steps", "parsed", "built", "correct", "faster", "accepted")
    assert [tuple(row[n] for n in names) for row in rows] == [("m", 1, 4, 3, 2, 1, 0, 1)]
