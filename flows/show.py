"""`kforge show`: the story of a pair, step by step."""

import json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from data.records import Advice, Iteration, Mode
from tasks import pages
from tasks.story import diff, story

STYLES = {"+": "green", "-": "red", "@": "cyan"}
VERDICTS = {"FASTER": "bold green", "CORRECT": "green"}


def show(runs: Path, pair: str, run_id: str | None, *, as_json: bool) -> None:
    """Prints each step's verdict, time, advice and diff; MisuseError when nothing is on record."""
    history = story(runs, pair, run_id)
    if as_json:
        for iteration in history:
            print(json.dumps(_plain(iteration, history)))
        return
    console = Console(highlight=False, soft_wrap=True)
    first = history[0]
    console.print(
        f"{first.operator.name}@{first.device.name}  run {first.run_id}, epoch {first.epoch},"
        f" contract {first.contract}",
        style="bold",
        markup=False,
    )
    for iteration in history:
        console.print(_step(iteration, history))


def _step(iteration: Iteration, history: tuple[Iteration, ...]) -> Text:
    """One step as lines."""
    move = iteration.move
    head = " ".join(part for part in (f"\nstep {move.step}", move.mode.value, move.lineage) if part)
    text = Text(f"{head}: ", "bold")
    text.append(iteration.verdict.value, VERDICTS.get(iteration.verdict.value, "yellow"))
    text.append(" (needs review)" if iteration.needs_review else "")
    text.append(f"  {pages.speed(iteration)}" if iteration.speedup else "")
    for line in (*_facts(iteration), *_advice(iteration)):
        text.append(f"\n  {line}")
    for line in diff(iteration, history) if move.mode is not Mode.CONFIRM else ():
        text.append(f"\n    {line}", STYLES.get(line[:1], "dim"))
    return text


def _facts(iteration: Iteration) -> list[str]:
    """Reason, author, techniques and times."""
    lines = [f"reason: {iteration.reason}"] if iteration.reason else []
    if (made := iteration.candidate) is not None:
        author = f"{made.agent_kind} {made.agent_name}" + (f" ({made.model})" if made.model else "")
        lines.append(f"candidate: {iteration.candidate_id or 'no code'} by {author}")
    if iteration.techniques_added:
        lines.append(f"techniques added: {', '.join(iteration.techniques_added)}")
    if iteration.gain_over_parent is not None:
        lines.append(f"gain over its parent: {iteration.gain_over_parent:.2f}x")
    for t in iteration.run.timings if iteration.run else ():
        floor = f", floor {t.floor_us:.1f} us" if t.floor_us is not None else ""
        lines.append(
            f"time at {t.shape}: {t.candidate_us:.1f} us, {t.baseline} {t.baseline_us:.1f} us,"
            f" {pages.interval(t.ratio, t.low, t.high)}{floor}"
        )
    return lines


def _advice(iteration: Iteration) -> list[str]:
    advice = iteration.advice
    if advice is None:
        return []
    cited = ", ".join(f"{e.metric}={e.value:.4g}" for e in advice.evidence)
    return [
        f"advice ({advice.agent_kind} {advice.agent_name}): {advice.change}",
        f"  bottleneck {advice.bottleneck.value}, technique {advice.technique}; {cited}",
        *_expected(advice),
    ]


def _expected(advice: Advice) -> list[str]:
    expected = advice.expected_gain
    return [f"  expected gain {expected:.2f}x"] if expected is not None else []


def _plain(iteration: Iteration, history: tuple[Iteration, ...]) -> dict[str, object]:
    """One step for machines; units in the names."""
    advice = iteration.advice
    return {
        "operator": iteration.operator.name,
        "device": iteration.device.name,
        "run_id": iteration.run_id,
        "step": iteration.move.step,
        "mode": iteration.move.mode.value,
        "lineage": iteration.move.lineage,
        "candidate_id": iteration.candidate_id,
        "verdict": iteration.verdict.value,
        "reason": iteration.reason,
        "needs_review": iteration.needs_review,
        "baseline": iteration.baseline,
        "speedup": iteration.speedup,
        "speedup_low": iteration.speedup_low,
        "speedup_high": iteration.speedup_high,
        "gain_over_parent": iteration.gain_over_parent,
        "candidate_us": {
            t.shape: t.candidate_us for t in (iteration.run.timings if iteration.run else ())
        },
        "techniques_added": list(iteration.techniques_added),
        "advice": advice.change if advice else None,
        "technique": advice.technique if advice else None,
        "expected_gain": advice.expected_gain if advice else None,
        "diff": "\n".join(diff(iteration, history)),
    }
