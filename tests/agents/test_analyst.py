"""The analyst's answers are believed only where the metrics agree."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agents.analyst import LlmAnalyst, response_format
from agents.roofline import contradiction
from data.errors import ContextError
from data.records import Advice, Bottleneck, Counsel, Evidence, Metric, Mode, Profile, Request
from tests.agents.test_generator import RIGHT, WRONG, Model, request

VALUES = {
    "time_us": 20.0,
    "time_over_floor": 4.0,
    "bandwidth_share": 0.42,
    "compute_share": 0.06,
    "null_share": 0.02,
}
PROFILE = Profile(
    metrics=tuple(Metric(name=n, value=v, unit="", source="roofline") for n, v in VALUES.items()),
    remarks=("12: loop not vectorized",),
)
RULES = Advice(
    bottleneck=Bottleneck.MEMORY,
    evidence=(Evidence(metric="bandwidth_share", value=0.42),),
    change="by rule",
    technique="vectorize",
)


class StandIn:
    """The rule analyst's place."""

    def __init__(self, advice: Advice | None = RULES) -> None:
        self.advice = advice
        self.asked = 0

    async def advise(self, _: Request) -> Counsel:
        self.asked += 1
        return Counsel(advice=self.advice, reason="" if self.advice else "nothing left")


def opinion(**changed: Any) -> str:
    values = {
        "bottleneck": "memory",
        "evidence": [{"metric": "bandwidth_share", "value": 0.42}],
        "change": "Use wider loads.",
        "technique": "vectorize",
        "parameters": [{"name": "width", "value": "8"}],
        "expected_gain": 1.3,
        "confidence": 0.6,
    }
    return json.dumps(values | changed)


def asked() -> Request:
    return replace(request(Mode.OPTIMISE, WRONG, RIGHT), profile=PROFILE)


async def counsel(*replies: str | Exception | None, stand_in: StandIn | None = None) -> Counsel:
    return await LlmAnalyst(Model(list(replies)), stand_in or StandIn()).advise(asked())


async def test_good_advice_is_taken() -> None:
    """The row says that a model gave it; nothing was replaced."""
    found = await counsel(opinion())
    assert found.advice is not None
    assert (found.advice.change, found.advice.technique) == ("Use wider loads.", "vectorize")
    assert found.advice.parameters == {"width": "8"}
    assert (found.advice.agent_kind, found.advice.model) == ("llm", "openai/local")
    assert found.advice.replaced == ""
    assert [c.parse_status for c in found.calls] == ["ok"]


async def test_it_sees_metrics_source_and_attempts() -> None:
    """The prompt holds what the advice must rest on, and asks for the schema."""
    model = Model([opinion()])
    await LlmAnalyst(model, StandIn()).advise(asked())
    system, user = (m["content"] for m in model.asked[0])
    assert system.startswith("You are the analyst of KForge")
    for part in (
        "bandwidth_share | 0.42",
        "loop not vectorized",
        "class ModelNew",
        "2 | a | create",
    ):
        assert part in user
    assert model.formats == [response_format()]


BAD = {
    "compute-bound at 6 % compute and 42 % bandwidth": opinion(bottleneck="compute"),
    "nothing to gain at 4 times the floor": opinion(bottleneck="none"),
    "launch-bound at 2 % of the time": opinion(bottleneck="launch"),
    "a metric that does not exist": opinion(evidence=[{"metric": "occupancy", "value": 0.5}]),
    "a value that was not measured": opinion(evidence=[{"metric": "time_us", "value": 25.0}]),
    "no evidence": opinion(evidence=[]),
    "an unknown technique": opinion(technique="magic"),
    "a gain that is no ratio": opinion(expected_gain=-1.0),
    "a confidence above 1": opinion(confidence=80),
    "a class that does not exist": opinion(bottleneck="gremlins"),
    "a missing field": '{"bottleneck": "memory"}',
    "no change": opinion(change=" "),
    "prose": "It is memory-bound.",
    "cut off": opinion()[:60],
    "nothing": None,
}


@pytest.mark.parametrize("name", BAD)
async def test_advice_against_the_metrics_is_replaced(name: str) -> None:
    """After one repair turn the stand-in advises, and the row says why."""
    stand_in = StandIn()
    found = await counsel(BAD[name], BAD[name], stand_in=stand_in)
    assert stand_in.asked == 1
    assert found.advice is not None
    assert found.advice.change == "by rule"
    assert found.advice.replaced.startswith("openai/local: ")
    assert len(found.calls) == 2
    assert "ok" not in {c.parse_status for c in found.calls}


async def test_one_repair_turn_is_enough() -> None:
    """The second answer counts when it is right; the first says what was wrong with it."""
    model = Model([opinion(bottleneck="compute"), opinion()])
    found = await LlmAnalyst(model, StandIn()).advise(asked())
    assert found.advice is not None
    assert found.advice.agent_kind == "llm"
    assert [c.parse_status for c in found.calls] == ["contradicted", "ok"]
    assert "compute-bound at 6% of peak compute" in model.asked[1][3]["content"]


async def test_a_rounded_value_is_no_lie() -> None:
    """Within 1 % of the measured value."""
    found = await counsel(opinion(evidence=[{"metric": "bandwidth_share", "value": 0.423}]))
    assert found.advice is not None
    assert found.advice.replaced == ""


async def test_the_stand_in_may_have_nothing() -> None:
    """Then there is no advice, and the reason names both."""
    found = await counsel("no", "no", stand_in=StandIn(advice=None))
    assert found.advice is None
    assert "nothing left" in found.reason
    assert "openai/local" in found.reason


async def test_nothing_to_gain_ends_the_search() -> None:
    """`none` is believed close to the roofline."""
    near = replace(
        PROFILE,
        metrics=tuple(
            replace(m, value=1.2) if m.name == "time_over_floor" else m for m in PROFILE.metrics
        ),
    )
    model = Model([opinion(bottleneck="none", change="At the roofline.")])
    found = await LlmAnalyst(model, StandIn()).advise(replace(asked(), profile=near))
    assert (found.advice, found.reason) == (None, "At the roofline.")


async def test_without_a_profile_no_model_is_asked() -> None:
    """There is nothing that an advice could rest on."""
    found = await LlmAnalyst(Model([]), StandIn()).advise(replace(asked(), profile=None))
    assert found.advice == RULES


async def test_a_prompt_too_long_is_rebuilt_once() -> None:
    """A second refusal is the caller's to report."""
    found = await counsel(ContextError("too long"), opinion())
    assert found.advice is not None
    with pytest.raises(ContextError):
        await counsel(ContextError("too long"), ContextError("too long"))


def known(**values: float) -> Profile:
    return Profile(
        metrics=tuple(Metric(name=n, value=v, unit="", source="") for n, v in values.items())
    )


RELU = {"time_us": 900.0, "arithmetic_intensity": 0.125, "machine_balance": 10.0}
"""Of an operator and a card, before anything was counted."""


@pytest.mark.parametrize("intensity", [0.0, 0.125])
async def test_an_operator_without_arithmetic_is_not_compute_bound(intensity: float) -> None:
    """Also when only a time is cited: a small model said so of a relu."""
    profile = known(**RELU | {"arithmetic_intensity": intensity})
    evidence = [{"metric": "time_us", "value": 900.0}]
    model = Model([opinion(bottleneck="compute", evidence=evidence)] * 2)
    request = replace(asked(), profile=profile)
    found = await LlmAnalyst(model, StandIn()).advise(request)
    assert found.advice is not None
    assert "operations a byte" in found.advice.replaced
    assert {c.parse_status for c in found.calls} == {"contradicted"}


HONEST = {
    "a matrix product": RELU | {"arithmetic_intensity": 40.0},
    "exponentials, counted as one operation each": RELU | {"arithmetic_intensity": 0.6},
    "no card": {"time_us": 900.0, "arithmetic_intensity": 0.125},
    "unknown operations": {"time_us": 900.0, "machine_balance": 10.0},
    "units that a profiler saw busy": RELU | {"issue_share": 0.8},
    "a fifth of the peak reached": RELU | {"compute_share": 0.2},
}


@pytest.mark.parametrize("case", HONEST)
def test_an_honest_compute_bound_passes(case: str) -> None:
    """Refused is only what leaves no room."""
    assert contradiction(Bottleneck.COMPUTE, known(**HONEST[case])) is None


@pytest.mark.parametrize("claim", [Bottleneck.LATENCY, Bottleneck.LAUNCH, Bottleneck.MEMORY])
def test_a_small_shape_may_wait(claim: Bottleneck) -> None:
    """Far from both roofs the operator's intensity says nothing about what it waits for."""
    small = known(**RELU, time_over_floor=40.0, bandwidth_share=0.02, null_share=0.6)
    assert contradiction(claim, small) is None


@pytest.mark.parametrize("claim", list(Bottleneck))
def test_missing_metrics_contradict_nothing(claim: Bottleneck) -> None:
    """What is unknown is not guessed."""
    assert contradiction(claim, Profile(metrics=())) is None


def test_the_schema_is_one_that_providers_take() -> None:
    """Flat: no references, no lengths, every field required."""
    text = json.dumps(response_format())
    for word in ("$ref", "$defs", "maxLength", "minItems"):
        assert word not in text
    assert response_format()["json_schema"]["schema"]["additionalProperties"] is False
