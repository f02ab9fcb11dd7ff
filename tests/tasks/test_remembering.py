"""What earlier verdicts are told to a generator, and that a resumed step is told the same."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents.generator import LlmGenerator
from agents.prompt import generator_messages
from data.memory import Lesson, Reference
from data.records import Candidate, Contract, Iteration, Mode, Move, Operator, Settings
from data.store import Ledger
from tasks.campaign import Campaign, identify, store_campaign
from tasks.crew import Crew
from tasks.remembering import remembered
from tests.agents.test_generator import ANSWER, PAIR, Model, request
from tests.data.samples import CPU, RELU, confirmed, plain, timing

GPU = replace(CPU, name="gpu", vendor="nvidia")
LESSON = Lesson(
    technique="vectorize",
    expected_gain=1.31,
    operators_here=0,
    helped_here=0,
    hurt_here=0,
    operators_elsewhere=9,
    helped_elsewhere=8,
    hurt_elsewhere=0,
)


def addition(number: int, gain: float, **other: object) -> Iteration:
    """A step that added one technique to its parent, on an operator of its own."""
    run = plain(0).run
    timed = timing(parent_ratio=gain, parent_low=gain / 1.02, parent_high=gain * 1.02)
    made = Candidate(
        source=f"# {number}",
        language="cpp",
        agent_kind="llm",
        agent_name="m",
        parents=("p",),
        techniques=("vectorize",),
    )
    assert run is None
    values: dict[str, object] = {
        "operator": replace(RELU, name=f"op{number}", source=f"class Model: {number}"),
        "move": Move(mode=Mode.OPTIMISE, step=number, lineage="a"),
        "candidate": made,
        "run": replace(confirmed(0, 1.5).run, timings=(timed,)),  # type: ignore[type-var]
        "techniques_added": ("vectorize",),
        "gain_over_parent": gain,
        "speedup": 1.5,
        "baseline": "eager",
    }
    return plain(number, **(values | other))


def campaign(runs: Path, **other: object) -> Campaign:
    made = Campaign(
        run_id="",
        epoch="default",
        runs=str(runs),
        operators=(RELU,),
        devices=(GPU,),
        contract=Contract(),
        settings=Settings(reference="cpu"),
        crew=Crew(kind="llm", models=("m",)),
    )
    return identify(replace(made, **other))  # type: ignore[arg-type]  # fields by name


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    ledger = Ledger(tmp_path)
    for number in range(9):
        ledger.append(addition(number, 1.4))
    kernel = plain(1).candidate
    assert kernel is not None
    kernel = replace(kernel, source="KERNEL", parameters={"unroll": "4"}, techniques=("unroll",))
    ledger.append(confirmed(20, 1.7, candidate=kernel))
    return tmp_path


def test_lessons_and_the_reference_come_from_verdicts(runs: Path) -> None:
    """Nine operators elsewhere speak for a technique; the kernel is the one that was confirmed."""
    (pair,) = remembered(campaign(runs)).pairs()
    (lesson,) = pair.lessons
    assert (lesson.technique, lesson.operators_elsewhere, lesson.helped_elsewhere) == (
        "vectorize",
        9,
        9,
    )
    assert 1.02 < lesson.expected_gain < 1.4
    assert pair.reference is not None
    assert (pair.reference.device, pair.reference.source) == ("cpu", "KERNEL")
    assert pair.reference.parameters == {"unroll": "4"}
    assert pair.reference.techniques == ("unroll",)


def test_what_stops_helping_is_dropped(runs: Path) -> None:
    """Outcomes credit and discredit: nine operators that it hurt outweigh the nine it helped."""
    ledger = Ledger(runs)
    for number in range(30, 42):
        ledger.append(addition(number, 0.6))
    assert remembered(campaign(runs)).pairs()[0].lessons == ()


def test_a_resumed_campaign_is_told_the_same(runs: Path) -> None:
    """Else its prompts would differ from those that were paid."""
    first = remembered(campaign(runs))
    store_campaign(first)
    Ledger(runs).append(confirmed(21, 9.9))
    again = remembered(campaign(runs))
    assert again.memory == first.memory
    assert again.run_id == first.run_id


def test_other_operators_contracts_and_arms_are_told_nothing(runs: Path) -> None:
    """Without --reference no kernel is shown; templates and rules are told nothing at all."""
    bare = remembered(campaign(runs, settings=Settings())).pairs()[0]
    assert bare.reference is None
    other = (Operator(name="x", source="class Model: x", family="conv"),)
    strange = remembered(campaign(runs, operators=other)).pairs()[0]
    assert (strange.lessons, strange.reference) == ((), None)
    assert remembered(campaign(runs, crew=Crew())).pairs()[0].lessons == ()


def test_templates_are_shown_the_reference_alone(runs: Path) -> None:
    """They have no prompt for lessons; a foreign kernel's schedule they can use."""
    (pair,) = remembered(campaign(runs, crew=Crew())).pairs()
    assert pair.lessons == ()
    assert pair.reference is not None
    assert pair.reference.device == "cpu"
    told = remembered(campaign(runs, crew=Crew(), settings=Settings())).pairs()[0]
    assert told.reference is None


def test_a_device_is_not_shown_its_own_kernel(runs: Path) -> None:
    """It would count as an arm with a foreign one."""
    of_cpu, of_gpu = remembered(campaign(runs, devices=(CPU, GPU))).pairs()
    assert of_cpu.reference is None
    assert of_gpu.reference is not None


async def test_the_prompt_shows_them_and_the_row_names_the_arm() -> None:
    """Foreign is said to be foreign, and which kernel was shown is on record."""
    shown = Reference(device="h200", candidate_id="c1", language="cuda", source="K1", speedup=2.0)
    pair = replace(PAIR, lessons=(LESSON,), reference=shown)
    asked = replace(request(), pair=pair)
    system = generator_messages(asked)[0]["content"]
    assert "- vectorize: 1.31x expected; elsewhere: helped 8, hurt 0 of 9 operators" in system
    assert "It was confirmed on h200 at 2.00x" in system
    assert "K1" in system
    proposal = await LlmGenerator(Model([ANSWER])).propose(asked)
    assert proposal.candidate is not None
    assert proposal.candidate.reference == "c1"
