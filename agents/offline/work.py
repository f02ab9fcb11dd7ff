"""What one pass over a row computes, accumulates and stores, free of any language."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.offline.nest import Nest
from agents.offline.passes import Passes, Phase, along, wanted
from agents.offline.program import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One pass; all values vary along the row."""

    number: int
    values: tuple[Value, ...]
    """To compute, arguments first."""
    kept: frozenset[int]
    """Ids of those that are read from an earlier pass's buffer."""
    reductions: tuple[Value, ...]
    totals: tuple[Value, ...]
    """Reductions over all rows whose terms arise here."""
    stores: tuple[int, ...]
    """Numbers of the outputs that are written here."""

    @property
    def scans(self) -> tuple[Value, ...]:
        return tuple(v for v in self.values if v.op == "scan" and id(v) not in self.kept)

    def read(self, value: Value) -> bool:
        """Whether the value comes out of a buffer."""
        return id(value) in self.kept


def work(nest: Nest, phase: Phase, order: Passes, number: int) -> Work | None:
    """The work of a pass; None when nothing varies along the row in it."""
    at, buffered = order.at, {id(v): v for v in order.kept}
    targets = wanted(nest, phase, at, number, buffered)
    if not targets:
        return None
    kept = frozenset(key for key in buffered if at[key] < number)
    values = _closure(nest, targets, kept)
    inside = {id(v) for v in values}
    return Work(
        number=number,
        values=values,
        kept=kept & inside,
        reductions=tuple(
            v
            for v in phase.needed
            if v.op == "reduce" and not nest.total(v) and at[id(v.args[0])] == number
            and along(nest, v.args[0])
        ),
        totals=tuple(
            t
            for t in phase.totals
            if along(nest, t.args[0]) and id(t.args[0]) in inside and at[id(t.args[0])] == number
        ),
        stores=tuple(
            k
            for k in phase.outputs
            if along(nest, nest.outputs[k]) and at[id(nest.outputs[k])] == number
        ),
    )  # fmt: skip


def _closure(nest: Nest, targets: Sequence[Value], kept: frozenset[int]) -> tuple[Value, ...]:
    """Values along the row to compute, arguments first; kept ones are read."""
    found: set[int] = set()
    stack = list(targets)
    while stack:
        value = stack.pop()
        if id(value) in found or not along(nest, value):
            continue
        found.add(id(value))
        if id(value) not in kept:
            stack.extend(value.args)
    return tuple(v for v in nest.values if id(v) in found)
