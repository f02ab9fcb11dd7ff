"""What is on record of a pair, read again for people."""

import difflib
from pathlib import Path

from data import views
from data.errors import MisuseError
from data.records import Iteration
from data.store import Ledger


def story(runs: Path, pair: str, run_id: str | None = None) -> tuple[Iteration, ...]:
    """The steps of a pair such as `softmax@cpu`, of its latest run unless one is named.

    MisuseError when nothing is on record of it.
    """
    rows = views.query(runs, views.question("pairs")).to_pylist()
    mine = [r for r in rows if f"{r['operator']}@{r['device']}".lower() == pair.lower()]
    if not mine:
        known = list(dict.fromkeys(f"{r['operator']}@{r['device']}" for r in rows))
        raise MisuseError(_unknown(runs, pair, known))
    of_run = [r for r in mine if run_id in (None, r["run_id"])]
    if not of_run:
        listed = ", ".join(dict.fromkeys(r["run_id"] for r in mine))
        raise MisuseError(f"{pair} has no run {run_id!r}; known: {listed}")
    latest = of_run[0]
    return Ledger(runs).history(latest["run_id"], latest["operator_hash"], latest["device"])


def _unknown(runs: Path, pair: str, known: list[str]) -> str:
    if not known:
        return f"nothing is on record in {runs}; run kforge port first or give --runs"
    close = difflib.get_close_matches(pair, known, n=3, cutoff=0.3) or known[:3]
    return f"nothing is on record of {pair!r} in {runs}; {len(known)} pairs are: {', '.join(close)}"


def parent(iteration: Iteration, history: tuple[Iteration, ...]) -> Iteration | None:
    """The earlier step that the iteration's candidate was made from; None for a first one."""
    earlier = (i for i in history if i.move.step < iteration.move.step)
    return next((i for i in earlier if i.candidate_id == iteration.move.parent), None)


def diff(iteration: Iteration, history: tuple[Iteration, ...]) -> tuple[str, ...]:
    """Lines of a unified diff to the parent's source; empty without a parent or a change."""
    made_from = parent(iteration, history) if iteration.move.parent else None
    if made_from is None or iteration.candidate is None or made_from.candidate is None:
        return ()
    return tuple(
        difflib.unified_diff(
            made_from.candidate.source.splitlines(),
            iteration.candidate.source.splitlines(),
            f"step {made_from.move.step}",
            f"step {iteration.move.step}",
            lineterm="",
            n=2,
        )
    )
