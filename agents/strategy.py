"""What to do next, decided from the history alone: a run that was cut goes on where it stopped.

First candidates with different hints, each mended a few times, the last step of the limit kept for
one advice. Then the next try goes where this pair's tries have lifted the best most per call: to
advice on the two best lineages in turn, or to one more first candidate (`agents/worth.py`). Where
nothing is timed the pair ends with one advice. Reasons and figures: docs/loop.md; arms to compare
with: `benchmarks/strategies.py`.
"""

import math

from agents.worth import ADVICE_CALLS, advice_worth, first_worth
from data.records import Iteration, Mode, Move, Settings, Strategy

LETTERS = "abcdefghijklmnopqrstuvwxyz"
KEPT_LINEAGES = 2
ENOUGH_HEADROOM = 1.10
"""Time over the roofline floor at which nothing is worth trying."""
LEAST_GAIN = 1.01
"""Expected of a try, or nothing more is tried."""
CONFIRMATIONS = 3
"""Winners that may fail the confirming run before the pair is given up."""

History = tuple[Iteration, ...]


def next_move(
    history: History, settings: Settings, spent: frozenset[str] = frozenset()
) -> Move | None:
    """The next step, None when the pair has ended.

    `spent`: lineages for which an agent had nothing more to try; one that is not in the history is
    the first candidate that the generator did not have.
    """
    if not history:
        return None if spent else _create(history, settings)
    if _settled(history):
        return None
    if not _search_ended(history, settings, spent):
        return _search(history, settings, spent) or _confirm(history)
    return _confirm(history)


def finished(history: History) -> bool:
    """Whether a pair whose search is over has ended: refused, confirmed, or nothing to confirm."""
    return bool(history) and (_settled(history) or _confirm(history) is None)


def _settled(history: History) -> bool:
    return history[0].candidate is None or any(_confirmed(i) for i in history)


def starts_from_kernel(source: str) -> bool:
    """Whether a given kernel can be judged as it is, not only be translated."""
    return "class ModelNew" in source


def _search(history: History, settings: Settings, spent: frozenset[str]) -> Move | None:
    latest = history[-1]
    if settings.strategy is Strategy.SAMPLING:
        more = _lineage(_opened(history)) not in spent
        return _create(history, settings) if more else None
    if _may_fix(history, settings, spent):
        return _move(Mode.FIX, history, latest.move.lineage, latest)
    parent = _next_parent(history, spent)
    if parent is None or _opens(history, settings, spent):
        return _create(history, settings) if _may_open(history, settings, spent) else None
    return _move(Mode.OPTIMISE, history, parent.move.lineage, parent)


def _move(mode: Mode, history: History, lineage: str, parent: Iteration | None) -> Move:
    return Move(
        mode=mode,
        step=len(history),
        lineage=lineage,
        parent=parent.candidate_id if parent else None,
        hint=lineage,
    )


def _create(history: History, settings: Settings) -> Move:
    first = not history
    mode = Mode.TRANSLATE if first and settings.start else Mode.CREATE
    return _move(mode, history, _lineage(_opened(history)), None)


def _lineage(number: int) -> str:
    """Its name: a to z, then aa, ab, ...

    >>> _lineage(0), _lineage(27)
    ('a', 'ab')
    """
    first, second = divmod(number, len(LETTERS))
    return (LETTERS[first - 1] if first else "") + LETTERS[second]


def _opened(history: History) -> int:
    return len({i.move.lineage for i in history})


def _may_fix(history: History, settings: Settings, spent: frozenset[str]) -> bool:
    latest, lineage = history[-1], history[-1].move.lineage
    return not latest.right and lineage not in spent and _fixes(history, lineage) < settings.fixes


def _may_open(history: History, settings: Settings, spent: frozenset[str]) -> bool:
    """Whether the generator has one more first candidate; a ladder stands on one."""
    return settings.strategy is not Strategy.LADDER and _lineage(_opened(history)) not in spent


def _opens(history: History, settings: Settings, spent: frozenset[str]) -> bool:
    """Whether a first candidate comes before the next advice on what is right."""
    best = best_of(history)
    if best is None or not best.device.timed or not _may_open(history, settings, spent):
        return best is None
    calls = _calls_left(history, settings)
    if calls is not None and calls < ADVICE_CALLS and settings.strategy is Strategy.PAIR:
        return True
    if _opened(history) < settings.first:
        advised = any(i.move.mode is Mode.OPTIMISE for i in history)
        return advised or settings.steps - len(history) > 1
    advice = advice_worth(history, analyst=settings.strategy is Strategy.PAIR)
    return first_worth(history).per_call > advice.per_call


def _calls_left(history: History, settings: Settings) -> int | None:
    """Of models; None where nobody counts them or no model was asked."""
    made = sum(len(i.calls) for i in history)
    return settings.calls - made if settings.calls is not None and made else None


def _fixes(history: History, lineage: str) -> int:
    """Tries to mend since the lineage was last right."""
    count = 0
    for iteration in reversed(history):
        if iteration.move.lineage == lineage:
            if iteration.right or iteration.move.mode is not Mode.FIX:
                break
            count += 1
    return count


def _search_ended(history: History, settings: Settings, spent: frozenset[str]) -> bool:
    best = best_of(history)
    if _confirming(history) or len(history) >= settings.steps:
        return True
    if settings.strategy is Strategy.SAMPLING:
        return best is not None and _close_to_floor(best)
    if best is not None and not best.device.timed:
        # Nothing tells which is faster: one advice is all.
        return any(i.move.mode is Mode.OPTIMISE for i in history) or best.move.lineage in spent
    if best is None:
        more = _opened(history) < settings.first and _may_open(history, settings, spent)
        return not (more or _may_fix(history, settings, spent))
    return _close_to_floor(best) or _plateau(history, settings)


def _close_to_floor(best: Iteration) -> bool:
    times = best.run.timings if best.run else ()
    floors = [t.candidate_us / t.floor_us for t in times if t.floor_us]
    return bool(floors) and len(floors) == len(times) and max(floors) <= ENOUGH_HEADROOM


def _plateau(history: History, settings: Settings) -> bool:
    """Whether neither a first candidate nor advice is expected to bring the least gain."""
    if _opened(history) < settings.first:
        return False
    advice = advice_worth(history, analyst=settings.strategy is Strategy.PAIR)
    return max(first_worth(history).lift, advice.lift) < math.log(LEAST_GAIN)


def _next_parent(history: History, spent: frozenset[str]) -> Iteration | None:
    """The best of the kept lineage that was advised least since it last rose."""
    kept = [i for i in _champions(history) if i.move.lineage not in spent][:KEPT_LINEAGES]
    if not kept:
        return None
    return min(kept, key=lambda champion: _advised_since(history, champion))


def _advised_since(history: History, champion: Iteration) -> int:
    later = [i for i in history if i.move.step > champion.move.step]
    mine = [i for i in later if i.move.lineage == champion.move.lineage]
    return sum(i.move.mode is Mode.OPTIMISE for i in mine)


def _champions(history: History) -> list[Iteration]:
    """The best right iteration of each lineage, best first."""
    lineages = {i.move.lineage for i in history}
    found = [best_of(tuple(i for i in history if i.move.lineage == name)) for name in lineages]
    return sorted((i for i in found if i), key=lambda i: (-_score(i), i.move.step))


def best_of(history: History) -> Iteration | None:
    """The fastest right iteration that no confirming run has refused; the earliest among equals."""
    refused = {i.candidate_id for i in _confirming(history) if not i.right}
    right = [
        i
        for i in history
        if i.right and i.move.mode is not Mode.CONFIRM and i.candidate_id not in refused
    ]
    return max(right, key=lambda i: (_score(i), -i.move.step), default=None)


def _score(iteration: Iteration) -> float:
    return iteration.speedup or 0.0


def _confirming(history: History) -> History:
    return tuple(i for i in history if i.move.mode is Mode.CONFIRM)


def _confirmed(iteration: Iteration) -> bool:
    return iteration.move.mode is Mode.CONFIRM and iteration.right


def _confirm(history: History) -> Move | None:
    best = best_of(history)
    if best is None or len(_confirming(history)) >= CONFIRMATIONS:
        return None
    return _move(Mode.CONFIRM, history, best.move.lineage, best)
