"""The judgement cannot be bought: each cheat has evidence, and the evidence decides."""

import math
from typing import Any

import pytest

from data.records import BuildResult, Contract, LibraryPolicy, RunResult, RunStatus, Timing
from data.verdict import FAILED, FASTER_ABOVE, REVIEW_ABOVE, Judgement, Verdict, judge
from tests.data.samples import timing

BUILT = BuildResult(ok=True, route="launcher")
ACCEPTED = {Verdict.CORRECT, Verdict.FASTER}


def ran(*timings: Timing, **other: Any) -> RunResult:
    return RunResult(status=RunStatus.RAN, timings=timings, **({"authored": True} | other))


def judged(run: RunResult | None, library: LibraryPolicy = LibraryPolicy.FLAGGED) -> Judgement:
    return judge(Contract(library=library), BUILT, run)


def test_what_does_not_compile_failed_to_build() -> None:
    """Whatever a run claims, a failed build is the verdict, with the compiler's sentence."""
    failed = BuildResult(ok=False, route="launcher", detail="expected ';'")
    verdict = judge(Contract(), failed, ran(timing(ratio=5.0)))
    assert (verdict.verdict, verdict.reason) == (Verdict.BUILD_FAILED, "expected ';'")
    assert verdict.speedup is None


def test_what_was_not_executed_is_unverified() -> None:
    """A build alone earns neither CORRECT nor a speed."""
    verdict = judged(None)
    assert (verdict.verdict, verdict.speedup) == (Verdict.UNVERIFIED, None)


@pytest.mark.parametrize("status", [s for s in RunStatus if s is not RunStatus.RAN])
def test_no_failed_run_is_ever_accepted(status: RunStatus) -> None:
    """Every status but RAN has its verdict, none of them accepts, none has a speed."""
    verdict = judged(RunResult(status=status, detail="why", authored=True))
    assert verdict.verdict is FAILED[status]
    assert verdict.verdict not in ACCEPTED
    assert (verdict.reason, verdict.speedup) == ("why", None)


@pytest.mark.parametrize("status", [s for s in RunStatus if s is not RunStatus.RAN])
def test_wrong_answers_cannot_carry_a_time(status: RunStatus) -> None:
    """Evidence of a speed without a right answer cannot even be written down."""
    with pytest.raises(ValueError, match="no time"):
        RunResult(status=status, timings=(timing(),))


@pytest.mark.parametrize("status", [RunStatus.INPUT_CHANGED, RunStatus.DEFERRED, RunStatus.FORGED])
def test_proven_deceit_is_cheated(status: RunStatus) -> None:
    """Changed inputs, late answers and forged reports are deceit, not mere errors."""
    assert judged(RunResult(status=status)).verdict is Verdict.CHEATED


def test_right_without_times_is_correct_without_speed() -> None:
    """Correctness alone gives no speed-up, not one of 1.0."""
    verdict = judged(ran())
    assert (verdict.verdict, verdict.speedup, verdict.low) == (Verdict.CORRECT, None, None)


def test_a_lucky_mean_is_not_faster() -> None:
    """The lower bound decides, not the mean."""
    verdict = judged(ran(timing(ratio=3.0, low=0.9, high=10.0)))
    assert verdict.verdict is Verdict.CORRECT
    assert verdict.speedup == pytest.approx(3.0)


@pytest.mark.parametrize(("low", "expected"), [(1.0199, "CORRECT"), (1.0201, "FASTER")])
def test_bound_of_faster(low: float, expected: str) -> None:
    """FASTER begins above 1.02, the noise of two equal kernels."""
    assert FASTER_ABOVE == 1.02
    assert judged(ran(timing(ratio=1.05, low=low, high=1.08))).verdict == expected


def test_one_fast_shape_does_not_hide_a_slow_one() -> None:
    """Over shapes the geometric mean counts: four times and a quarter are even."""
    verdict = judged(ran(timing("small", 4.0), timing("full", 0.25)))
    assert verdict.verdict is Verdict.CORRECT
    assert verdict.speedup == pytest.approx(1.0, rel=1e-12)


def test_interval_of_one_shape_is_its_own() -> None:
    """With one shape nothing is combined."""
    verdict = judged(ran(timing(ratio=2.0, low=1.5, high=2.5)))
    assert verdict.low == pytest.approx(1.5)
    assert verdict.high == pytest.approx(2.5)


def test_half_widths_add_in_quadrature() -> None:
    """Four shapes of equal width halve it; the widest one still counts."""
    equal = judged(ran(*(timing(str(n), 2.0, low=2.0 / 1.21, high=2.0 * 1.21) for n in range(4))))
    assert equal.low == pytest.approx(2.0 / 1.1, rel=1e-9)
    assert equal.high == pytest.approx(2.0 * 1.1, rel=1e-9)
    wide = judged(ran(timing("a", 2.0, low=1.99, high=2.01), timing("b", 2.0, low=0.5, high=8.0)))
    assert wide.low == pytest.approx(2.0 * math.exp(-math.log(4.0) / 2), rel=1e-2)


def test_a_wide_shape_cannot_be_diluted_into_faster() -> None:
    """A shape whose interval is open keeps the pair from FASTER."""
    verdict = judged(ran(timing("a", 1.1, low=1.09, high=1.11), timing("b", 1.1, low=0.6, high=2)))
    assert verdict.verdict is Verdict.CORRECT


@pytest.mark.parametrize(("ratio", "flag"), [(9.9, False), (10.1, True), (500.0, True)])
def test_too_good_to_be_true_is_flagged(ratio: float, *, flag: bool) -> None:
    """Above ten times somebody should look: the verdict stands, with the flag."""
    verdict = judged(ran(timing(ratio=ratio)))
    assert REVIEW_ABOVE == 10.0
    assert (verdict.verdict, verdict.needs_review) == (Verdict.FASTER, flag)


@pytest.mark.parametrize("timings", [(), (timing(),)])
def test_reasons_to_look_again_raise_the_flag(timings: tuple[Timing, ...]) -> None:
    """What the judge's machine noticed (below the floor) reaches the row, timed or not."""
    verdict = judged(ran(*timings, review=("faster than the roofline floor",)))
    assert verdict.needs_review
    assert verdict.verdict in ACCEPTED


@pytest.mark.parametrize("library", [LibraryPolicy.FLAGGED, LibraryPolicy.REFUSED])
def test_a_wrapped_library_call_is_not_authored(library: LibraryPolicy) -> None:
    """The reference called again, or a decoy kernel whose result is thrown away, earns nothing."""
    wrapped = ran(timing(ratio=3.0), authored=False, library_ops=("aten.mm",))
    verdict = judged(wrapped, library)
    assert verdict.verdict is Verdict.NOT_AUTHORED
    assert "aten.mm" in verdict.reason
    assert verdict.speedup is None


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        (LibraryPolicy.FLAGGED, Verdict.FASTER),
        (LibraryPolicy.REFUSED, Verdict.NOT_AUTHORED),
        (LibraryPolicy.ALLOWED, Verdict.FASTER),
    ],
)
def test_library_compute_beside_own_kernels(library: LibraryPolicy, expected: Verdict) -> None:
    """A hybrid stands unless the contract refuses it."""
    hybrid = ran(timing(ratio=3.0), library_ops=("aten.mm",))
    assert judged(hybrid, library).verdict is expected


def test_allowed_judges_a_library_call_like_any_other() -> None:
    """Under ALLOWED only the numbers count."""
    wrapped = ran(timing(ratio=0.98), authored=False, library_ops=("aten.mm",))
    assert judged(wrapped, LibraryPolicy.ALLOWED).verdict is Verdict.CORRECT


def test_every_baseline_is_named() -> None:
    """A speed-up over several shapes names each baseline once."""
    verdict = judged(
        ran(timing("a"), timing("b", baseline="torch.compile"), timing("c", baseline="eager"))
    )
    assert verdict.baseline == "eager / torch.compile"


def test_gain_over_parent_is_the_mean_of_timed_shapes() -> None:
    """Shapes without a parent's time are left out; without any there is no gain."""
    some = judged(ran(timing("a", parent_ratio=2.0), timing("b", parent_ratio=0.5), timing("c")))
    assert some.gain_over_parent == pytest.approx(1.0)
    assert judged(ran(timing())).gain_over_parent is None


def test_reused_memory_is_told_but_not_counted() -> None:
    """The ratio is without it already; the reason says how much more it gives."""
    verdict = judged(ran(timing(ratio=1.0, allocation=3.0)))
    assert verdict.verdict is Verdict.CORRECT
    assert verdict.speedup == pytest.approx(1.0)
    assert "memory that it reuses gives 3.00x more" in verdict.reason
