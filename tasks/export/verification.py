"""What VERIFICATION.md says of one kernel."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from data.records import Draw, Iteration
from tasks.export.described import Described, slower
from tasks.pages import interval, speed

VERSIONS = ("torch", "python", "driver", "compiler", "cpu", "simd", "threads", "system")
"""Of the environment, in this order; a `uuid` names one card and stays here."""


def page_of(kernel: Iteration, entry: Described) -> dict[str, Any]:
    """Values for the template."""
    assert kernel.candidate is not None
    assert kernel.run is not None
    found = kernel.environment
    return {
        "name": entry.name,
        "operator": kernel.operator.name,
        "suite": kernel.operator.suite,
        "hash": kernel.operator.hash,
        "verdict": kernel.verdict.value,
        "needs_review": kernel.needs_review,
        "reason": _line(kernel.reason),
        "speed": speed(kernel),
        "baseline": kernel.baseline or "nothing",
        "contract": str(kernel.contract),
        "device": kernel.device.name,
        "vendor": kernel.device.vendor,
        "arch": kernel.device.arch,
        "card": entry.card,
        "environment": [(name, _line(found[name])) for name in VERSIONS if found.get(name)],
        "date": kernel.ended_at[:16].replace("T", " "),
        "isolation": kernel.run.isolation,
        "language": kernel.candidate.language,
        "author": " ".join(filter(None, _author(kernel))),
        "candidate": kernel.candidate_id,
        "library_ops": ", ".join(kernel.run.library_ops),
        "rows": list(_rows(kernel, entry)),
        "distributions": _distributions(kernel.run.draws),
    }


def _author(kernel: Iteration) -> tuple[str | None, ...]:
    assert kernel.candidate is not None
    candidate = kernel.candidate
    return (candidate.agent_kind, candidate.agent_name, candidate.model)


def _rows(kernel: Iteration, entry: Described) -> list[dict[str, str]]:
    """One a size: what was drawn there, how exact, how fast, and whether the package uses it."""
    assert kernel.run is not None
    shapes = dict.fromkeys(draw.shape for draw in kernel.run.draws)
    return [_row(kernel, entry, shape) for shape in shapes]


def _row(kernel: Iteration, entry: Described, shape: str) -> dict[str, str]:
    assert kernel.run is not None
    draws = [draw for draw in kernel.run.draws if draw.shape == shape]
    case = next((c for c in entry.cases if c.shape == shape), None)
    timing = next((t for t in kernel.run.timings if t.shape == shape), None)
    inputs = ", ".join(f"{dtype}{size}" for dtype, size in case.inputs) if case else "-"
    timed = (
        f"{interval(timing.ratio, timing.low, timing.high)} over {timing.baseline}"
        if timing
        else "not timed"
    )
    return {
        "shape": shape,
        "inputs": inputs,
        "draws": _counted(draws),
        "error": _largest(draws),
        "speed": timed,
        "used": "yes" if case else "no: PyTorch is faster" if shape in slower(kernel) else "no",
    }


def _counted(draws: Sequence[Draw]) -> str:
    found = Counter(draw.ok for draw in draws)
    return f"{found[True]} right" + (f", {found[False]} wrong" if found[False] else "")


def _largest(draws: Sequence[Draw]) -> str:
    errors = [draw.error for draw in draws if draw.error is not None]
    return f"{max(errors):.2g}" if errors else "exact"


def _distributions(draws: Sequence[Draw]) -> str:
    """What the inputs looked like; edits and permutations are named once."""
    parts = (part for draw in draws for part in draw.distribution.split(", "))
    return ", ".join(dict.fromkeys(parts))


def _line(text: str) -> str:
    """The text in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
