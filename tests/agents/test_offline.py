"""The keyless agents: what they propose, in what order, and when they say that they cannot."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from agents.offline import OfflineGenerator, RuleAnalyst
from data.codec import dumps, loads
from data.memory import Reference
from data.records import (
    Admission,
    Advice,
    Bottleneck,
    Brief,
    Candidate,
    Card,
    Contract,
    Device,
    Iteration,
    Metric,
    Mode,
    Move,
    Node,
    Operator,
    Pair,
    Profile,
    Request,
    Settings,
    Shape,
    Strategy,
    TensorSpec,
)
from data.techniques import TECHNIQUES, detect
from data.verdict import Outcome, Verdict

SOURCE = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
"""
SIZE = (2048, 1024)
GRAPH = (
    Node(name="x", op="input", shape=SIZE, dtype="float32"),
    Node(
        name="softmax", op="aten.softmax.int", args=({"node": "x"}, -1), shape=SIZE, dtype="float32"
    ),
    Node(name="output", op="output", args=(({"node": "softmax"},),)),
)
SPEC = TensorSpec(name="x", shape=SIZE, dtype="float32")
SHAPE = Shape(
    name="full", inputs=(SPEC,), outputs=(SPEC,), flops=None, moved_bytes=2.0**24, floor_us=None
)
PAIR = Pair(
    run_id="r",
    epoch="default",
    operator=Operator(name="softmax", source=SOURCE),
    device=Device(name="cpu", target="cpu", vendor="cpu", arch="x86-64"),
    contract=Contract(),
    settings=Settings(),
    brief=Brief(language="cpp", guide="", example_operator="", example_kernel=""),
)


def request(
    mode: Mode = Mode.CREATE,
    *,
    lineage: str = "a",
    history: tuple[Iteration, ...] = (),
    parent: str | None = None,
    graph: tuple[Node, ...] = GRAPH,
) -> Request:
    card = Card(peak_gb_s=20.0, cores=2, simd="avx512f")
    admission = Admission(outcome=None, reason="", shapes=(SHAPE,), graph=graph, card=card)
    move = Move(mode=mode, step=len(history), lineage=lineage, parent=parent)
    return Request(pair=PAIR, admission=admission, move=move, history=history)


def step(candidate: Candidate, number: int = 0, **changes: object) -> Iteration:
    row = Iteration(
        run_id="r",
        epoch="default",
        operator=PAIR.operator,
        device=PAIR.device,
        contract=PAIR.contract,
        move=Move(mode=Mode.CREATE, step=number, lineage="a"),
        verdict=Verdict.CORRECT,
        reason="",
        candidate=candidate,
        speedup=1.1,
        baseline="eager",
        gain_over_parent=1.1,
    )
    return replace(row, **changes)  # type: ignore[arg-type]  # names checked by the record


async def first(lineage: str = "a", seed: int = 0) -> Candidate:
    proposal = await OfflineGenerator(seed).propose(request(lineage=lineage))
    assert proposal.candidate is not None
    return proposal.candidate


async def test_first_candidates_of_lineages_differ() -> None:
    """Three lineages search from three places, else two of them are wasted."""
    assert len({(await first(lineage)).id for lineage in "abc"}) == 3


async def test_the_first_candidate_takes_over_a_foreign_schedule() -> None:
    """What the other kernel's template chose is tried first, and every row names that kernel."""
    shown = Reference(
        device="gpu", candidate_id="c1", language="cuda", source="K", speedup=2.0,
        parameters={"unroll": "1", "across": "256"}, techniques=("prefetch", "warp_reduce"),
    )  # fmt: skip
    asked = request()
    asked = replace(asked, pair=replace(asked.pair, reference=shown))
    made = (await OfflineGenerator().propose(asked)).candidate
    assert made is not None
    assert made.parameters == {**(await first()).parameters, "unroll": "1", "prefetch": "256"}
    assert made.reference == "c1"
    again = replace(asked, history=(step(made),), move=replace(asked.move, step=1, lineage="b"))
    second = (await OfflineGenerator().propose(again)).candidate
    assert second is not None
    assert second.parameters == (await first("b")).parameters
    assert second.reference == "c1"


async def test_a_foreign_kernel_that_says_nothing_to_templates_makes_no_arm() -> None:
    """A model's kernel without a technique that they have changes nothing and is not named."""
    shown = Reference(device="gpu", candidate_id="c1", language="cuda", source="K", speedup=2.0)
    asked = request()
    asked = replace(asked, pair=replace(asked.pair, reference=shown))
    assert (await OfflineGenerator().propose(asked)).candidate == await first()


async def test_a_ladder_begins_with_the_plainest_schedule() -> None:
    """So a technique that a rule begins with can be added and timed; its author is another one."""
    asked = request()
    settings = Settings(strategy=Strategy.LADDER)
    asked = replace(asked, pair=replace(asked.pair, settings=settings))
    plain, ruled = (await OfflineGenerator().propose(asked)).candidate, await first()
    assert plain is not None
    assert plain.parameters["unroll"] == "1"
    assert set(plain.techniques) < set(ruled.techniques)
    assert (plain.agent_name, ruled.agent_name) == ("plain templates", "templates")


async def test_a_request_gives_the_same_candidate_again() -> None:
    """An interrupted run goes on with the very candidates that it would have had."""
    start = await first()
    asked = request(Mode.OPTIMISE, history=(step(start),), parent=start.id)
    one, two = [await OfflineGenerator(3).propose(asked) for _ in range(2)]
    assert one == two
    assert one.candidate != start


async def test_no_source_is_proposed_twice_until_the_space_is_exhausted() -> None:
    """Every step is a new kernel; at the end an outcome says so."""
    generator = OfflineGenerator(1)
    history: tuple[Iteration, ...] = (step(await first()),)
    parent = history[0].candidate_id
    for _ in range(600):
        proposal = await generator.propose(request(Mode.OPTIMISE, history=history, parent=parent))
        if proposal.candidate is None:
            break
        history = (*history, step(proposal.candidate, len(history)))
    assert proposal.candidate is None
    assert proposal.outcome is Outcome.NOT_COVERED
    assert proposal.reason == "search space exhausted"
    assert len({i.candidate_id for i in history}) == len(history) > 50


async def test_an_uncovered_operator_is_named() -> None:
    """The outcome's sentence names the ATen operator without a template."""
    node = Node(name="softmax", op="aten.grid_sampler_2d.default", args=({"node": "x"},))
    graph = (GRAPH[0], node, GRAPH[2])
    proposal = await OfflineGenerator(0).propose(request(graph=graph))
    assert proposal.outcome is Outcome.NOT_COVERED
    assert proposal.reason == "the offline library has no template for aten.grid_sampler_2d"


async def test_an_untraced_operator_is_not_covered() -> None:
    """Without a graph nothing is matched, and nothing is raised."""
    proposal = await OfflineGenerator(0).propose(request(graph=()))
    assert proposal.outcome is Outcome.NOT_COVERED


async def test_advice_is_carried_out() -> None:
    """The advised technique is in the next candidate, declared and in its code."""
    start = await first("b")
    asked = request(Mode.OPTIMISE, history=(step(start),), parent=start.id)
    advice = Advice(
        bottleneck=Bottleneck.MEMORY, evidence=(), change="", technique="streaming_store"
    )
    proposal = await OfflineGenerator(0).propose(replace(asked, advice=advice))
    assert "streaming_store" not in start.techniques
    assert proposal.candidate is not None
    assert "streaming_store" in proposal.candidate.techniques
    assert "streaming_store" in detect(proposal.candidate.source, "cpp")


async def test_fixing_backs_off_to_simpler_schedules() -> None:
    """A broken schedule is not shuffled but made simpler, one parameter after the other."""
    start = await first()
    asked = request(Mode.FIX, history=(step(start),), parent=start.id)
    proposal = await OfflineGenerator(0).propose(asked)
    assert proposal.candidate is not None
    changed = {k for k, v in proposal.candidate.parameters.items() if start.parameters[k] != v}
    assert changed == {"stream"}
    assert "simpler" in proposal.candidate.note


async def test_a_candidate_survives_the_process_border_and_uses_known_tags() -> None:
    """Candidates travel as JSON and are grouped by the closed vocabulary."""
    candidate = await first()
    assert loads(Candidate, dumps(candidate)) == candidate
    assert set(candidate.techniques) <= set(TECHNIQUES)
    assert candidate.agent_kind == "offline"


# -- the analyst --------------------------------------------------------------------------------


def profile(**values: float) -> Profile:
    return Profile(
        metrics=tuple(Metric(name=k, value=v, unit="", source="test") for k, v in values.items())
    )


MEMORY_BOUND = {
    "time_over_floor": 2.0, "bandwidth_share": 0.5, "compute_share": 0.1, "null_share": 0.01,
    "arithmetic_intensity": 0.6, "machine_balance": 9.0,
}  # fmt: skip
COMPUTE_BOUND = {**MEMORY_BOUND, "arithmetic_intensity": 40.0, "compute_share": 0.4}


def profiles() -> Iterator[dict[str, float]]:
    yield MEMORY_BOUND
    yield COMPUTE_BOUND
    yield {k: v for k, v in MEMORY_BOUND.items() if k != "machine_balance"}
    yield {"bandwidth_share": 0.1}
    yield {"time_us": 10.0}


@pytest.mark.parametrize("values", list(profiles()))
async def test_analyst_cites_only_metrics_that_exist(values: dict[str, float]) -> None:
    """Each cited number is in the profile with that value; at least one is cited."""
    counsel = await RuleAnalyst().advise(replace(request(), profile=profile(**values)))
    assert counsel.advice is not None
    assert counsel.advice.evidence
    assert all(values[e.metric] == e.value for e in counsel.advice.evidence)
    assert counsel.advice.technique in TECHNIQUES
    assert counsel.advice.expected_gain is not None


async def test_analyst_tells_memory_from_compute() -> None:
    """The roofline side decides the class."""
    for values, bottleneck in ((MEMORY_BOUND, "memory"), (COMPUTE_BOUND, "compute")):
        counsel = await RuleAnalyst().advise(replace(request(), profile=profile(**values)))
        assert counsel.advice is not None
        assert counsel.advice.bottleneck == bottleneck


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"time_over_floor": 1.05}, "floor"), ({"null_share": 0.8}, "launch-bound")],
)
async def test_analyst_stops_where_nothing_can_be_won(changes: dict[str, float], word: str) -> None:
    """Near the floor and when the call itself costs, no advice is given."""
    asked = replace(request(), profile=profile(**{**MEMORY_BOUND, **changes}))
    counsel = await RuleAnalyst().advise(asked)
    assert counsel.advice is None
    assert word in counsel.reason


async def test_analyst_neither_repeats_the_parent_nor_a_failure() -> None:
    """Tags of the parent and advices that brought nothing are passed over until none is left."""
    seen: list[str] = []
    history: tuple[Iteration, ...] = (step(await first("b")),)
    parent = history[0].candidate
    assert parent is not None
    for _ in range(20):
        asked = request(Mode.OPTIMISE, history=history, parent=parent.id)
        counsel = await RuleAnalyst().advise(replace(asked, profile=profile(**MEMORY_BOUND)))
        if counsel.advice is None:
            break
        seen.append(counsel.advice.technique)
        other = replace(parent, source=f"# {len(history)}")
        failed = step(other, len(history), advice=counsel.advice, gain_over_parent=0.9)
        history = (*history, failed)
    assert counsel.advice is None
    assert len(seen) == len(set(seen)) >= 1
    assert not set(seen) & set(parent.techniques)
