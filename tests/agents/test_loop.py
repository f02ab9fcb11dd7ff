from dataclasses import replace

from agents.loop import CONFIRM_PAIRS, EXPLORE_PAIRS, port
from data.guardrails import Guardrails
from data.records import (
    Admission,
    BuildResult,
    Counsel,
    MeasureJob,
    Mode,
    Proposal,
    Request,
    Strategy,
)
from data.verdict import Outcome, Verdict
from tests.agents.fakes import ADVICE, Scripted, pair
from tests.data.samples import call


def modes(script: Scripted) -> list[str]:
    return [str(i.move.mode) for i in script.rows]


def verdicts(script: Scripted) -> list[str]:
    return [str(i.verdict) for i in script.rows]


async def test_a_broken_kernel_is_mended_then_sped_up() -> None:
    """Does not compile, wrong, slow, fast: the verdicts come in this order and are all recorded."""
    script = Scripted(["broken", "wrong", "0.5x", "2.0x"])
    await port(pair(steps=4), script.stages())
    assert modes(script) == ["create", "fix", "fix", "optimise", "confirm"]
    assert verdicts(script) == ["BUILD_FAILED", "WRONG", "CORRECT", "FASTER", "FASTER"]


async def test_each_fix_sees_what_failed_before() -> None:
    """The generator is asked to mend the latest failure, with the whole history at hand."""
    script = Scripted(["broken", "wrong", "0.5x"])
    await port(pair(steps=3), script.stages())
    assert [len(r.history) for r in script.requests] == [0, 1, 2]
    assert script.requests[1].parent is not None
    assert script.requests[1].parent.verdict is Verdict.BUILD_FAILED


async def test_the_generator_gets_the_one_advice() -> None:
    """An optimising step carries the analyst's advice, and the row keeps it."""
    script = Scripted(["0.5x", "2.0x"])
    await port(pair(steps=2), script.stages())
    assert script.requests[1].advice == ADVICE
    assert script.rows[1].advice == ADVICE
    assert script.advised[0].profile is not None


async def test_a_right_step_keeps_its_profile() -> None:
    """The row has what an analyst would read of its candidate; a wrong kernel has no profile."""
    script = Scripted(["wrong", "2.0x"])
    await port(pair(steps=2), script.stages())
    kept = [i.profile.value("bandwidth_share") if i.profile else None for i in script.rows]
    assert kept == [None, 0.3, 0.3]


async def test_hopeless_candidates_end() -> None:
    """A generator that never gets it right stops at its tries and loses nothing."""
    script = Scripted(["wrong"] + [f"wrong {i}" for i in range(30)])
    history = await port(pair(steps=30, first=2, fixes=3), script.stages())
    assert modes(script) == ["create", "fix", "fix", "fix"] * 2
    assert history == tuple(script.rows)


async def test_the_confirming_run_is_the_reported_one() -> None:
    """The winner is judged anew with more pairs and without its parent; losers are not."""
    script = Scripted(["1.5x", "3.0x"])
    history = await port(pair(steps=2), script.stages())
    assert history[-1].move.mode is Mode.CONFIRM
    assert script.jobs[-1].source == "3.0x"
    assert script.jobs[-1].thorough
    assert [j.pairs for j in script.jobs] == [EXPLORE_PAIRS] * 2 + [CONFIRM_PAIRS]


async def test_a_winner_that_fails_its_confirmation_is_dropped() -> None:
    """A kernel that only the hidden draws catch gives way to the next best."""
    script = Scripted(["1.5x", "3.0x"], confirms={"3.0x": "wrong"})
    history = await port(pair(steps=2), script.stages())
    assert verdicts(script)[-2:] == ["WRONG", "FASTER"]
    assert history[-1].candidate is not None
    assert history[-1].candidate.source == "1.5x"


async def test_a_cut_run_goes_on_where_it_stopped() -> None:
    """From every prefix of a finished history the same steps follow, none twice."""
    replies = ["broken", "0.5x", "2.0x", "1.1x", "2.5x"]
    whole = Scripted(list(replies))
    history = await port(pair(steps=5), whole.stages())
    for cut in range(len(history) + 1):
        asked = sum(i.move.mode is not Mode.CONFIRM for i in history[:cut])
        rest = Scripted(replies[asked:])
        assert await port(pair(steps=5), rest.stages(), history[:cut]) == history
        assert [i.move.step for i in rest.rows] == list(range(cut, len(history)))


async def test_a_finished_pair_costs_nothing() -> None:
    """A second run asks nobody anything, not even for admission."""
    script = Scripted(["2.0x"])
    history = await port(pair(steps=1), script.stages())
    again = Scripted([], admission=Admission(outcome=Outcome.NOT_ADMITTED, reason="never asked"))
    assert await port(pair(steps=1), again.stages(), history) == history
    assert again.rows == []


async def test_an_ill_posed_operator_spends_nothing() -> None:
    """A refused operator is one row with an outcome and no candidate; it stays ended."""
    script = Scripted([], admission=Admission(outcome=Outcome.NOT_ADMITTED, reason="accepts zeros"))
    history = await port(pair(), script.stages())
    assert [i.verdict for i in history] == [Outcome.NOT_ADMITTED]
    assert script.requests == []
    assert await port(pair(), Scripted(["2.0x"]).stages(), history) == history


async def test_not_covered_is_an_outcome_not_a_failure() -> None:
    """Without a template there is one row that says so."""
    script = Scripted([])
    await port(pair(), script.stages())
    assert verdicts(script) == ["NOT_COVERED"]
    assert script.rows[0].reason == "no template"


async def test_no_more_ideas_goes_straight_to_the_confirmation() -> None:
    """A template library that has tried all its schedules ends the search, not the pair."""
    script = Scripted(["1.5x", "1.6x"])
    await port(pair(steps=20), script.stages())
    assert modes(script) == ["create", "create", "confirm"]


class Silent(Scripted):
    """An analyst who has no advice for the first lineage."""

    async def advise(self, request: Request) -> Counsel:
        counsel = await super().advise(request)
        return replace(counsel, advice=None) if request.move.lineage == "a" else counsel


async def test_a_lineage_without_advice_leaves_the_others_their_turn() -> None:
    """What is spent is one lineage, the best, not the search: the next best takes its turn."""
    script = Silent(["2.0x", "1.9x", "1.8x", "1.7x", "3.0x", "4.0x"])
    history = await port(pair(steps=6, first=4), script.stages())
    assert [(str(i.move.mode), i.move.lineage) for i in history[4:]] == [
        ("optimise", "b"),
        ("optimise", "b"),
        ("confirm", "b"),
    ]
    assert [r.move.lineage for r in script.advised] == ["a", "b", "b"], "nobody is asked twice"


async def test_a_repeated_source_is_not_measured_again() -> None:
    """The same text gets the same verdict, says so and costs no device time."""
    script = Scripted(["2.0x", "2.0x"])
    await port(pair(steps=2), script.stages())
    assert len(script.jobs) == 2
    assert "step 0" in script.rows[1].reason


async def test_close_to_the_floor_nothing_more_is_tried() -> None:
    """Within 10 % of the roofline the pair confirms and ends."""
    script = Scripted(["2.0x", "2.1x"], floor_us=490.0)
    await port(pair(steps=9), script.stages())
    assert modes(script) == ["create", "confirm"]


async def test_a_plateau_stops_the_search() -> None:
    """Where neither advice nor fresh starts bring anything the search ends long before 50."""
    script = Scripted(["2.0x"] + [f"1.{i}x" for i in range(10, 60)])
    await port(pair(steps=50), script.stages())
    assert 10 < len(script.rows) < 24
    assert {"create", "optimise"} == set(modes(script)[3:-1])


async def test_the_parent_is_timed_beside_its_child() -> None:
    """The gain over the parent rests on one lease, so the parent's source travels with the job."""
    script = Scripted(["1.5x", "3.0x"])
    await port(pair(steps=2), script.stages())
    assert [j.parent_source for j in script.jobs] == [None, "1.5x", None]


async def test_a_given_kernel_is_judged_first() -> None:
    """`--start` with a ModelNew module: the loop begins from its verdict, not from a guess."""
    script = Scripted(["2.0x"])
    await port(pair(steps=2, start="1.2x class ModelNew"), script.stages())
    assert script.rows[0].candidate is not None
    assert script.rows[0].candidate.agent_kind == "given"
    assert script.rows[0].speedup == 1.2


async def test_what_a_run_bans_is_neither_built_nor_measured() -> None:
    """A source against the guardrails is no code; the generator is told why and may mend it."""
    rails = Guardrails(banned=("torch[.]matmul",), required=("x$",))
    script = Scripted(["torch.matmul 2.0x", "2.0 y", "2.0x"])
    await port(pair(steps=3, guardrails=rails), script.stages())
    assert verdicts(script)[:3] == ["NO_CODE", "NO_CODE", "FASTER"]
    assert "torch.matmul" in script.rows[0].reason
    assert "demands" in script.rows[1].reason
    assert [j.source for j in script.jobs[:1]] == ["2.0x"]
    assert script.requests[1].parent == script.rows[0]


async def test_a_fresh_start_may_leave_a_plateau() -> None:
    """A new first candidate that is better is advised in its turn, and wins."""
    flat = ["2.0x"] + [f"1.{i}x" for i in range(10, 17)]
    script = Scripted([*flat, "3.0x", "4.0x", *[f"1.{i}x" for i in range(20, 60)]])
    history = await port(pair(steps=50), script.stages())
    assert history[-1].candidate is not None
    assert history[-1].candidate.source == "4.0x"


async def test_a_kernel_that_differs_in_layout_only_is_not_built_twice() -> None:
    """Comments and blanks make no other kernel: the verdict of the first holds."""
    script = Scripted(["2.0x", "2.0x  # better now"])
    script.replies = ["x = 1  # 2.0x", "x = 1"]
    built: list[str] = []

    async def build(job: MeasureJob) -> BuildResult:
        built.append(job.source)
        return BuildResult(ok=False, route="launcher", detail="does not compile")

    await port(pair(steps=2), replace(script.stages(), build=build))
    assert built == ["x = 1  # 2.0x"]
    assert "the same source as step 0" in script.rows[1].reason


async def test_a_pair_is_advised_before_its_steps_end() -> None:
    """First candidates come first, but the last step is the analyst's, whose turn it never was."""
    for steps in (2, 3, 4):
        script = Scripted(["1.5x", "1.4x", "1.3x", "2.0x"])
        await port(pair(steps=steps), script.stages())
        assert modes(script) == ["create"] * (steps - 1) + ["optimise", "confirm"]


async def test_what_lifts_is_done_again() -> None:
    """Where advice pays it goes on; where it never does the calls go to first candidates."""
    gains = Scripted(["1.00x", "1.01x", "1.02x", *(f"{1 + i / 5:.1f}x" for i in range(1, 8))])
    await port(pair(steps=10), gains.stages())
    assert modes(gains)[3:-1] == ["optimise"] * 7
    vain = Scripted(["1.00x", "2.00x", "1.40x", *(f"0.{i}x" for i in range(50, 70))])
    await port(pair(steps=12), vain.stages())
    assert modes(vain)[3:-1].count("create") >= 5


async def test_a_last_call_is_no_advice_that_nobody_can_carry_out() -> None:
    """One call left buys one more first candidate; with two, or uncounted ones, advice goes on."""

    async def fifth(calls: int | None, asked: int) -> str:
        script = Scripted(["1.50x", "1.51x", "1.52x", "1.53x", "1.6x"])

        async def propose(request: Request) -> Proposal:
            found = await script.propose(request)
            return replace(found, calls=(call(),) * asked)

        asking = replace(script.stages(), propose=propose)
        await port(pair(steps=5, first=4, calls=calls), asking)
        return modes(script)[4]

    assert await fifth(5, 1) == "create"
    assert await fifth(6, 1) == "optimise"
    assert await fifth(None, 0) == "optimise"
    assert await fifth(1, 0) == "optimise"


async def test_the_single_agent_asks_no_analyst() -> None:
    """An arm to compare with: the same steps without advice."""
    script = Scripted(["1.5x", "2.0x", "1.0x"])
    await port(pair(steps=3, strategy=Strategy.SINGLE), script.stages())
    assert modes(script) == ["create", "create", "optimise", "confirm"]
    assert script.advised == []


async def test_sampling_starts_from_nothing_each_time() -> None:
    """The other arm: first candidates only, each in a lineage of its own, the best confirmed."""
    script = Scripted(["wrong", "1.5x", "broken", "1.2x"])
    await port(pair(steps=4, strategy=Strategy.SAMPLING), script.stages())
    assert modes(script) == ["create"] * 4 + ["confirm"]
    assert [i.move.lineage for i in script.rows] == [*"abcd", "b"]
    assert {r.parent for r in script.requests} == {None}


async def test_a_ladder_stands_on_one_first_candidate() -> None:
    """Advice upon advice, though another first candidate would pay more."""
    script = Scripted(["wrong", "1.0x", "1.1x", "1.1x", "1.2x"])
    await port(pair(steps=5, strategy=Strategy.LADDER), script.stages())
    assert modes(script) == ["create", "fix", *["optimise"] * 3, "confirm"]
    assert {i.move.lineage for i in script.rows} == {"a"}
