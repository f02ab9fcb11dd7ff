"""A recorded campaign is repeated without a model, to the letter, or ends with one line."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agents.loop import port, step
from data import recording
from data.errors import MisuseError, ReplayError
from data.recording import Recording
from data.records import (
    Iteration,
    MeasureJob,
    Metric,
    Pair,
    Profile,
    RunResult,
    RunStatus,
    digest,
)
from data.store import Ledger
from tasks.campaign import Campaign
from tasks.crew import Crew
from tasks.generate import agents_for
from tasks.recording import recorded
from tasks.replay import Replay, Script, recording_file
from tasks.stages import now
from tests.agents.fakes import Scripted, timing
from tests.agents.scripted_server import Fault, Reply, ScriptedServer
from tests.tasks.paying import ANSWER, crew, subject

ADVICE = json.dumps(
    {
        "bottleneck": "memory",
        "evidence": [{"metric": "bandwidth_share", "value": 0.3}],
        "change": "stream the output",
        "technique": "streaming_store",
        "parameters": [],
        "expected_gain": 1.5,
        "confidence": 0.5,
    }
)
GENERATED: list[Reply] = [
    ANSWER.format(n="wrong"),
    ANSWER.format(n=1),
    Fault.TRUNCATED,
    *(ANSWER.format(n=n) for n in range(2, 12)),
]
MARKS = ("agent_kind", "model", "cost_usd", "run_id", "started_at", "ended_at")


@dataclass
class Judge(Scripted):
    """Sources with `wrong` in them are; the speed of the others is drawn anew each time."""

    replies: list[str] = field(default_factory=list)
    chance: random.Random = field(default_factory=random.Random)
    wrong: str = "wrong"
    share: float = 0.3

    async def measure(self, job: MeasureJob) -> RunResult:
        self.jobs.append(job)
        if self.wrong in job.source:
            return RunResult(status=RunStatus.WRONG, detail=f"{self.chance.random()} differs")
        speed = timing(self.chance.uniform(0.5, 3.0))
        return RunResult(status=RunStatus.RAN, authored=True, timings=(speed,))

    def profile(self, *_: object) -> Profile:
        value = self.share
        metric = Metric(name="bandwidth_share", value=value, unit="", source="roofline")
        return Profile(metrics=(metric,))


async def walked(
    pair: Pair, agents: Any, ledger: Ledger, judge: Judge, replay: Replay | None = None
) -> tuple[Iteration, ...]:
    """All steps of the pair from its ledger on, as `tasks.campaign` has them made."""

    async def record(iteration: Iteration) -> None:
        ledger.append(iteration)

    stages = replace(
        judge.stages(), propose=agents.propose, advise=agents.advise, record=record, now=now
    )
    known = ledger.history(pair.run_id, pair.operator.hash, pair.device.name)
    if replay is None:
        return await port(pair, stages, known)
    return replay.ended(await port(pair, stages, replay.seen(known), replay.along(step)))


async def campaign(root: Path, generated: Sequence[Reply] = GENERATED, **more: object) -> Recording:
    """What is on record of a campaign of one pair with a scripted model."""
    pair, ledger = subject(0, steps=9), Ledger(root)
    with ScriptedServer(generator=[*generated], analyst=["prose", ADVICE]) as server:
        asked = crew(server.url, **more)
        await walked(pair, agents_for(asked, pair, ledger), ledger, Judge(chance=random.Random(1)))
    made = Campaign(
        run_id=pair.run_id,
        epoch=pair.epoch,
        runs=str(root),
        operators=(pair.operator,),
        devices=(pair.device,),
        contract=pair.contract,
        settings=pair.settings,
        crew=asked,
    )
    return recorded(made, ledger)


async def replayed(root: Path, found: Recording, pair: Pair, judge: Judge) -> Ledger:
    """The ledger after a replay of the recording by this judge."""
    text = recording.written(found)
    file = recording_file(root, digest(text))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    ledger = Ledger(root)
    agents = agents_for(Crew(kind="replay", recording=digest(text)), pair, ledger)
    await walked(pair, agents, ledger, judge, Replay(Script(found, pair)))
    return ledger


def again() -> Pair:
    return replace(subject(0, steps=9), run_id="r2")


def rows(ledger: Ledger, run_id: str) -> tuple[Iteration, ...]:
    pair = subject(0)
    return ledger.history(run_id, pair.operator.hash, pair.device.name)


def lasting(row: Iteration) -> dict[str, object]:
    """What a replay has in common with what it repeats."""
    made = row.candidate
    return {
        "move": row.move,
        "right": row.right,
        "candidate": made and replace(made, agent_kind="", model=None),
        "advice": row.advice and replace(row.advice, agent_kind="", model=None, replaced=""),
        "replaced": row.advice and row.advice.replaced.split(": ", 1)[-1],
        "said": [(c.role, c.prompt_hash, c.prompt, c.reply, c.parse_status) for c in row.calls],
        "added": row.techniques_added,
    }


async def test_a_replay_is_the_recorded_campaign_apart_from_times_and_marks(
    tmp_path: Path,
) -> None:
    """Whatever the times: the same steps, prompts and replies; rejected and repaired ones too."""
    found = await campaign(tmp_path / "a")
    read_back = tmp_path / "r.json"
    read_back.write_text(recording.written(found))
    assert recording.read(read_back) == found
    first = rows(Ledger(tmp_path / "a"), "r1")
    assert {s.call.parse_status for s in found.said} == {"ok", "truncated", "bad_json"}
    for seed in (2, 3):
        judge = Judge(chance=random.Random(seed), share=0.9)
        ledger = await replayed(tmp_path / f"b{seed}", found, again(), judge)
        second = rows(ledger, "r2")
        assert [lasting(r) for r in second] == [lasting(r) for r in first]
        assert [r.speedup for r in second] != [r.speedup for r in first], "times were copied"


async def test_a_replay_counts_as_nobodys_work(tmp_path: Path) -> None:
    """No tokens, no cost, a model of another name; its predictions are nobody's."""
    found = await campaign(tmp_path / "a")
    ledger = await replayed(tmp_path / "b", found, again(), Judge())
    connection = ledger.connect()
    asked = "SELECT DISTINCT model, prompt_tokens, completion_tokens, cost_usd FROM llm_calls"
    assert connection.execute(asked).fetchall() == [("replay/openai/local", 0, 0, 0.0)]
    kinds = "SELECT DISTINCT agent_kind, model FROM iterations"
    assert connection.execute(kinds).fetchall() == [("replay", "replay/openai/local")]
    advised = "SELECT count(*) FROM iterations WHERE predicted_gain > 0"
    assert connection.execute(advised).fetchone() != (0,)
    for name in ("calibration", "cost"):
        question = (Path(__file__).parents[2] / "data" / "queries" / f"{name}.sql").read_text()
        assert connection.execute(question).fetchall() == [], name


async def test_another_prompt_ends_with_one_line_that_says_where(tmp_path: Path) -> None:
    """Never a silent fall back: operator, step, role and the words that differ."""
    found = await campaign(tmp_path / "a")
    other = again()
    other = replace(other, brief=replace(other.brief, guide="quite another guide"))
    with pytest.raises(ReplayError) as caught:
        await replayed(tmp_path / "b", found, other, Judge())
    said = str(caught.value)
    assert "\n" not in said
    assert "op0@cpu, step 0, lineage a, generator: another prompt is on record" in said
    assert "recorded 'guide', now 'quite another guide'" in said


async def test_a_reply_that_was_changed_leads_out_of_the_recording(tmp_path: Path) -> None:
    """The source that came of it is not the recorded one."""
    found = await campaign(tmp_path / "a")
    first = found.said[0]
    forged = replace(first, call=replace(first.call, reply=ANSWER.format(n="forged")))
    with pytest.raises(ReplayError, match="step 0: another source than on record"):
        await replayed(
            tmp_path / "b", replace(found, said=(forged, *found.said[1:])), again(), Judge()
        )


async def test_a_verdict_that_differs_ends_it_and_stays_on_record(tmp_path: Path) -> None:
    """A judge that finds a right kernel wrong is told at once; going on finds the same."""
    found = await campaign(tmp_path / "a")
    for _ in range(2):
        with pytest.raises(ReplayError, match=r"step 1: \w+ is on record, now WRONG"):
            await replayed(tmp_path / "b", found, again(), Judge(wrong="return"))
    assert len(rows(Ledger(tmp_path / "b"), "r2")) == 2


async def test_a_cut_replay_goes_on(tmp_path: Path) -> None:
    """After a step that is on record, from it; the result is the same."""
    found = await campaign(tmp_path / "a")
    first = rows(Ledger(tmp_path / "a"), "r1")
    whole = await replayed(tmp_path / "b", found, again(), Judge())
    part = Ledger(tmp_path / "c")
    for row in rows(whole, "r2")[:3]:
        part.append(row)
    ledger = await replayed(tmp_path / "c", found, again(), Judge())
    assert [lasting(r) for r in rows(ledger, "r2")] == [lasting(r) for r in first]


async def test_a_search_that_money_ended_ends_there_again(tmp_path: Path) -> None:
    """A replay spends nothing, yet asks no more than was asked."""
    for calls in (1, 3, 5, 6, 7):
        found = await campaign(tmp_path / f"a{calls}", calls=calls)
        ledger = await replayed(tmp_path / f"b{calls}", found, again(), Judge())
        first = rows(Ledger(tmp_path / f"a{calls}"), "r1")
        assert [lasting(r) for r in rows(ledger, "r2")] == [lasting(r) for r in first]
        assert len(found.said) == calls


async def test_a_recording_that_was_cut_says_so(tmp_path: Path) -> None:
    """A campaign that was killed has no end to come to."""
    found = await campaign(tmp_path / "a")
    short = replace(
        found,
        rows=tuple(r for r in found.rows if r.move.step < 2),
        said=tuple(s for s in found.said if s.key.step < 2),
    )
    with pytest.raises(ReplayError, match=r"step 2.*was cut here; finish it first"):
        await replayed(tmp_path / "b", short, again(), Judge())


async def test_the_file_is_for_people_and_diffs(tmp_path: Path) -> None:
    """Each text once, a line a line; a changed line of a prompt is a changed line of the file."""
    found = await campaign(tmp_path / "a")
    text = recording.written(found)
    assert text == recording.written(found)
    content = json.loads(text)
    assert content["kforge_recording"] == recording.VERSION
    assert sum('"You are the generator of KForge' in line for line in text.splitlines()) == 1
    assert "latencies" not in text
    one = found.said[0]
    changed = replace(one, call=replace(one.call, reply=f"{one.call.reply}\nmore"))
    other = recording.written(replace(found, said=(changed, *found.said[1:])))
    new = set(other.splitlines()) - set(text.splitlines())
    assert len(new) <= 4, new


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "is no recording"),
        ("[]", "is no recording"),
        ('{"kforge_recording": 9}', "of version 9; expected 1"),
        ('{"kforge_recording": 1, "texts": {}}', "is a broken recording"),
    ],
)
def test_what_is_no_recording_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    """Misuse, not a crash."""
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(MisuseError, match=said):
        recording.read(file)
