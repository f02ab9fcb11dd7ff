"""In which pass over a row each value is computed, and what is kept from one to the next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.offline.atoms import HEAVY
from agents.offline.nest import Nest
from agents.offline.program import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Work between two full reductions: everything in it is one parallel loop over rows."""

    outputs: tuple[int, ...]
    """Numbers of the outputs that are stored."""
    totals: tuple[Value, ...]
    needed: tuple[Value, ...]
    """Arguments before users; totals of earlier phases are leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """`at` is the pass in which a value can first be computed, by id."""

    at: dict[int, int]
    kept: tuple[Value, ...]
    """Values that a later pass reads from a buffer."""
    last: int


def phases(nest: Nest) -> tuple[Phase, ...]:
    """The phases in order; one when there is no full reduction that another row needs."""
    of: dict[int, int] = {}
    for value in nest.values:
        before = [of[id(a)] + (1 if nest.total(a) else 0) for a in value.args]
        of[id(value)] = max(before, default=0)
    count = max(of[id(v)] for v in nest.outputs) + 1
    found = []
    for number in range(count):
        outputs = tuple(
            k
            for k, v in enumerate(nest.outputs)
            if of[id(v)] == number and not _scalar(nest, v, of)
        )
        totals = tuple(v for v in nest.values if nest.total(v) and of[id(v)] == number)
        roots = [nest.outputs[k] for k in outputs] + [t.args[0] for t in totals]
        if roots:
            found.append(Phase(outputs=outputs, totals=totals, needed=_closure(nest, roots)))
    return tuple(found)


def _scalar(nest: Nest, value: Value, of: dict[int, int]) -> bool:
    """Whether the value is one number, made of totals and constants alone."""
    return nest.total(value) or (not nest.leaves(value) and of[id(value)] > 0)


def _closure(nest: Nest, roots: Iterable[Value]) -> tuple[Value, ...]:
    wanted: set[int] = set()
    stack = list(roots)
    while stack:
        value = stack.pop()
        if id(value) not in wanted:
            wanted.add(id(value))
            stack.extend(() if nest.total(value) else value.args)
    return tuple(v for v in nest.values if id(v) in wanted)


def passes(nest: Nest, phase: Phase, *, keep: bool) -> Passes:
    """The passes over a row that the phase needs; `keep` buffers what is costly to compute."""
    at: dict[int, int] = {}
    for value in phase.needed:
        first = 0 if nest.total(value) else max((at[id(a)] for a in value.args), default=0)
        row = value.op == "reduce" and not nest.total(value)
        at[id(value)] = first + (1 if row else 0)
    last = max((at[id(v)] for v in phase.needed), default=0)
    kept: dict[int, Value] = {}
    for number in range(last, -1, -1):
        targets = wanted(nest, phase, at, number, kept)
        # Down columns a buffer would be as large as the tile of the input: nothing is won.
        found = _earlier(nest, targets, at, keep=keep and nest.mode == "row")
        kept |= {id(v): v for v in found if at[id(v)] < number}
    return Passes(at=at, kept=tuple(kept.values()), last=last)


def wanted(
    nest: Nest,
    phase: Phase,
    at: dict[int, int],
    number: int,
    kept: dict[int, Value],
) -> list[Value]:
    """The values along the row that pass `number` must compute."""
    roots = [nest.outputs[k] for k in phase.outputs] + [t.args[0] for t in phase.totals]
    found = [r for r in roots if at[id(r)] == number]
    found += [
        v.args[0]
        for v in phase.needed
        if v.op == "reduce" and not nest.total(v) and at[id(v.args[0])] == number
    ]
    found += [v for v in kept.values() if at[id(v)] == number]
    return [v for v in found if along(nest, v)]


def along(nest: Nest, value: Value) -> bool:
    """Whether the value differs along the row."""
    inner = nest.over or frozenset(nest.lanes.leaves)
    return bool(nest.leaves(value) & inner)


def _earlier(
    nest: Nest, targets: Sequence[Value], at: dict[int, int], *, keep: bool
) -> list[Value]:
    """Values of earlier passes that the targets need and that are not computed again."""
    number = max((at[id(t)] for t in targets), default=0)
    found: dict[int, Value] = {}
    stack, seen = list(targets), set()
    while stack:
        value = stack.pop()
        if id(value) in seen or not along(nest, value):
            continue
        seen.add(id(value))
        lasting = value.op == "scan" or (keep and heavy(nest, value))
        if at[id(value)] < number and lasting:
            found[id(value)] = value
        else:
            stack.extend(value.args)
    return list(found.values())


def heavy(nest: Nest, value: Value) -> bool:
    """Whether computing the value again costs more than reading it from cache."""
    if value.op != "map" or not along(nest, value):
        return value.op == "scan"
    return bool(set(value.needs) & HEAVY) or any(heavy(nest, a) for a in value.args)
