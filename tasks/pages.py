"""What the Prefect UI shows of a pair and of a campaign: rows, pages, keys. No Prefect here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from data.records import Iteration, Mode
from data.verdict import Verdict

if TYPE_CHECKING:  # the story of a pair is told without agents and machines
    from tasks.campaign import PairResult

PAGE_BYTES = 400_000
"""An artifact's event is refused at 1.5 MB; PREFECT.md advises to stay below 500 KB."""
LOG = 4000
"""Characters of a failed step's log: its end."""

Row = dict[str, str | int | None]


def slug(name: str) -> str:
    """The name as an artifact key: lower-case letters, digits, single dashes.

    >>> slug("Layer_Norm@cpu")
    'layer-norm-cpu'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unnamed"


def interval(speedup: float | None, low: float | None, high: float | None) -> str:
    """A speed-up with its 95 % interval; a dash where there is none.

    >>> interval(1.834, 1.8, 1.871)
    '1.83x [1.80, 1.87]'
    """
    if speedup is None:
        return "-"
    if low is None or high is None:
        return f"{speedup:.2f}x"
    return f"{speedup:.2f}x [{low:.2f}, {high:.2f}]"


def speed(iteration: Iteration) -> str:
    """The iteration's speed-up with its interval."""
    return interval(iteration.speedup, iteration.speedup_low, iteration.speedup_high)


def best(history: Sequence[Iteration]) -> Iteration | None:
    """The confirmed champion, else the fastest right candidate so far; None when none is right."""
    right = [i for i in history if i.right and i.candidate_id]
    confirmed = [i for i in right if i.move.mode is Mode.CONFIRM]
    return max(confirmed or right, key=lambda i: i.speedup or 0.0, default=None)


def progress(history: Sequence[Iteration], steps: int) -> float:
    """Share of the steps allowed, confirmation included, in per cent; below 100 until it ended."""
    return min(95.0, 100.0 * len(history) / (steps + 1))


def clean(text: str) -> str:
    r"""The text without what JSON over HTTP or a database refuses: lone surrogates and NUL.

    >>> clean("a\ud800b\x00")
    'a?b'
    """
    return text.encode(errors="replace").decode().replace("\x00", "")


def address(file: Path, served_at: str | None) -> str:
    """Where people open a file: under the address of its folder, else on the machine itself.

    >>> address(Path("/runs/reports/a b.html"), "https://host/reports/")
    'https://host/reports/a%20b.html'
    >>> address(Path("/runs/reports/a.html"), None)
    'file:///runs/reports/a.html'
    """
    return f"{served_at.rstrip('/')}/{quote(file.name)}" if served_at else file.as_uri()


def step_rows(history: Sequence[Iteration]) -> list[Row]:
    """One row an iteration."""
    return [_step_row(i) for i in history]


def _step_row(iteration: Iteration) -> Row:
    times = iteration.run.timings if iteration.run else ()
    return {
        "step": iteration.move.step,
        "mode": iteration.move.mode.value,
        "lineage": iteration.move.lineage,
        "verdict": iteration.verdict.value,
        "speed-up": speed(iteration),
        "baseline": iteration.baseline or "-",
        "time": ", ".join(f"{t.shape} {t.candidate_us:.1f} us" for t in times),
        "techniques added": ", ".join(iteration.techniques_added),
        "advice": clean(iteration.advice.change) if iteration.advice else "",
        "reason": clean(iteration.reason),
    }


def step_log(iteration: Iteration) -> str:
    """What a step came to, in a line; below it what compiler or run said where it went wrong."""
    build, run = iteration.build, iteration.run
    said = [f"{iteration.verdict.value} {speed(iteration)}".removesuffix(" -")]
    said += [iteration.reason] if not iteration.right else []
    said += [f"adds {', '.join(iteration.techniques_added)}"] if iteration.techniques_added else []
    said += [f"built in {build.seconds:.1f} s"] if build else []
    said += [f"judged in {run.seconds:.1f} s, sandbox {run.isolation}"] if run else []
    log = (run.log if run else "") or (build.log if build else "")
    lines = ["; ".join(said), *([log[-LOG:]] if log and not iteration.right else [])]
    return clean("\n".join(lines))


def best_page(iteration: Iteration, drawn: str = "") -> str:
    """Markdown: the champion's kernel with its speed-up and what that is measured against.

    `drawn`: pictures that come before the kernel.
    """
    source = iteration.candidate.source if iteration.candidate else ""
    if len(source) > PAGE_BYTES:
        half = PAGE_BYTES // 2
        cut = len(source) - 2 * half
        source = f"{source[:half]}\n# ... {cut} characters cut ...\n{source[-half:]}"
    fence = "`" * (1 + max(map(len, re.findall(r"`{2,}", source)), default=2))
    return clean(
        f"# {iteration.operator.name} on {iteration.device.name}\n\n"
        f"**{iteration.verdict.value}**: {iteration.reason}\n\n"
        f"{_facts(iteration)}\n\n{_times(iteration)}{drawn}\n\n"
        f"{fence}python\n{source}\n{fence}\n"
    )


def _facts(iteration: Iteration) -> str:
    """A table for people: what was measured, against what, and whose kernel it is."""
    made = iteration.candidate
    state = "confirmed" if iteration.move.mode is Mode.CONFIRM else "not confirmed yet"
    author = " ".join(filter(None, (made.agent_kind, made.agent_name, made.model))) if made else "-"
    rows = (
        ("speed-up", f"{speed(iteration)}, {state}"),
        ("---", "---"),
        ("baseline", iteration.baseline or "none: not timed"),
        ("contract", str(iteration.contract)),
        ("candidate", f"`{iteration.candidate_id}`, step {iteration.move.step}, {author}"),
        ("techniques", ", ".join(made.techniques if made else ()) or "-"),
        ("to look at it", f"`kforge show {iteration.operator.name}@{iteration.device.name}`"),
    )
    return "\n".join(f"| {name} | {text} |" for name, text in rows)


def _times(iteration: Iteration) -> str:
    """A table of the sizes; empty where nothing was timed."""
    timings = iteration.run.timings if iteration.run else ()
    rows = [
        f"| {t.shape} | {t.candidate_us:.1f} us | {t.baseline_us:.1f} us"
        f" | {interval(t.ratio, t.low, t.high)} | {f'{t.floor_us:.1f} us' if t.floor_us else '-'} |"
        for t in timings
    ]
    head = "| size | kernel | baseline | ratio | roofline floor |\n|---|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n\n" if rows else ""


def title(operators: Sequence[str], devices: Sequence[str], epoch: str) -> str:
    """A campaign in a line that a person can scan.

    >>> title(["softmax", "mish", "gelu", "relu", "cumsum"], ["cpu"], "2026-11-30")
    'softmax, mish, gelu and 2 more on cpu, 2026-11-30'
    """
    return f"{_listed(operators)} on {_listed(devices)}, {epoch}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def result_rows(results: Sequence[PairResult]) -> list[Row]:
    """One row a pair."""
    return [
        {
            "operator": r.operator,
            "device": r.device,
            "verdict": r.verdict + (" (needs review)" if r.needs_review else ""),
            "baseline": r.baseline or "-",
            "speed-up": interval(r.speedup, r.speedup_low, r.speedup_high),
            "steps": r.steps,
            "seconds": f"{r.seconds:.1f}",
        }
        for r in results
    ]


def summary(results: Sequence[PairResult]) -> str:
    """One sentence on the campaign."""
    faster = sum(r.verdict == Verdict.FASTER for r in results)
    new = sum(r.new_steps for r in results)
    return f"{len(results)} pairs, {faster} of them confirmed faster; {new} new steps"
