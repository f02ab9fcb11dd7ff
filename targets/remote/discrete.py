"""Outputs without a tolerance of their own: indices, quantised values, booleans, integers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from data.records import OutputKind
from targets.remote.draws import DrawInput
from targets.remote.located import located
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.oracle import EPS, exact
from targets.remote.sizing import flatten

NEAR = 64.0
"""Roundings of its terms by which a value counts as a tie: FACTOR of `numerics`."""
NOISES = (NEAR / 2, NEAR / 2 + 1)
"""Changes of the inputs, in roundings, under which an undecided answer shows itself."""
QUANTISED = (torch.int8, torch.uint8, torch.int16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrete:
    """Which values are right."""

    kind: OutputKind
    answers: tuple[Tensor, ...]
    """Any of them is right, element by element; the exact one first."""
    table: Tensor | None = None
    """For an index: the input (float64) that it points into."""
    axis: int = 0
    unrounded: Tensor | None = None
    """For a quantised output: its value before rounding, in steps."""


def kind_of(loaded: LoadedOperator, output: Tensor, number: int) -> OutputKind:
    """As the operator declares, or by dtype where it does not."""
    if output.is_floating_point() or output.is_complex():
        plain = OutputKind.FLOAT
    elif output.dtype is torch.bool:
        plain = OutputKind.BOOL
    else:
        plain = OutputKind.QUANTIZED if output.dtype in QUANTISED else OutputKind.INDEX
    kinds = loaded.kinds
    if kinds is None:
        return plain
    given = kinds[number] if number < len(kinds) else plain
    return plain if given is OutputKind.FLOAT else given


def discrete(
    loaded: LoadedOperator,
    draw: DrawInput,
    runs: tuple[list[object], list[object] | None],
    number: int,
) -> Discrete:
    """The right values of one output; `runs` are the declared and the exact outputs."""
    declared, truth = runs
    output = _tensor(declared, number)
    best = output if truth is None else _tensor(truth, number)
    kind = kind_of(loaded, output, number)
    if kind is OutputKind.INDEX:
        found = _table(draw, best)
        if found is not None:
            return Discrete(kind=kind, answers=(best,), table=found[0], axis=found[1])
    answers = [best, output]
    if truth is None or kind is OutputKind.INTEGER:
        return Discrete(kind=kind, answers=tuple(answers))
    if kind is OutputKind.QUANTIZED:
        unrounded = _unrounded(loaded, draw, number)
        if unrounded is not None and unrounded.shape == best.shape:
            return Discrete(kind=kind, answers=(best,), unrounded=unrounded)
    answers += [_tensor(exact(loaded, draw, noise=n), number) for n in NOISES]
    return Discrete(kind=kind, answers=tuple(answers))


def discrete_fault(goal: Discrete, output: Tensor) -> tuple[str, str]:
    """What is wrong, and what is remarkable though right; both empty for an equal output."""
    equal = output == goal.answers[0]
    if bool(equal.all()):
        return "", ""
    if goal.table is not None:
        return _index_fault(goal, output), ""
    if goal.unrounded is not None:
        return _step_fault(goal, output, equal)
    for answer in goal.answers[1:]:
        equal |= output == answer
    return ("", "") if bool(equal.all()) else (located(~equal, output), "")


def _index_fault(goal: Discrete, output: Tensor) -> str:
    """Ties are free: the value at the chosen index counts."""
    assert goal.table is not None
    extent = goal.table.shape[goal.axis]
    outside = (output < 0) | (output >= extent)
    if bool(outside.any()):
        return f"index outside 0 to {extent - 1}: " + located(outside, output)
    chosen, best = (_at(goal.table, goal.axis, i) for i in (output, goal.answers[0]))
    eps = EPS[torch.float32]
    bad = ~((chosen == best) | ((chosen - best).abs() <= NEAR / 4 * eps * best.abs()))
    if bool(bad.any()):
        return located(bad, output)
    if output.ndim == goal.table.ndim and not bool(_repeated(goal.answers[0], goal.axis).any()):
        again = _repeated(output, goal.axis)
        return "index chosen twice: " + located(again, output) if bool(again.any()) else ""
    return ""


def _repeated(index: Tensor, axis: int) -> Tensor:
    """Where an index stands that an earlier place along the axis holds too."""
    ordered, origin = index.sort(dim=axis, stable=True)
    same = ordered.diff(dim=axis, prepend=ordered.narrow(axis, 0, 1) - 1) == 0
    return torch.zeros_like(same).scatter(axis, origin, same)


def _step_fault(goal: Discrete, output: Tensor, equal: Tensor) -> tuple[str, str]:
    """One step off is right only where the unrounded value lies within tolerance of a tie."""
    assert goal.unrounded is not None
    value = goal.unrounded
    allowance = NEAR * EPS[torch.float32] * value.abs().clamp_min(1.0)
    tie = ((value - value.floor()) - 0.5).abs() <= allowance
    one = (output.double() - goal.answers[0].double()).abs() <= 1
    bad = ~(equal | (tie & one))
    if bool(bad.any()):
        return located(bad, output), ""
    return "", f"{int((~equal).sum())} of {output.numel()} elements one step off, all at ties"


def _table(draw: DrawInput, index: Tensor) -> tuple[Tensor, int] | None:
    """The input and its axis that `index` points into: the one where it picks an extreme."""
    for value in flatten(draw.inputs):
        if not isinstance(value, Tensor) or value.is_complex() or not value.ndim:
            continue
        for axis in reversed(range(value.ndim)):
            if _points(value, axis, index):
                table = value.double() if value.is_floating_point() else value
                if _picks_extreme(table, axis, index):
                    return table, axis
    return None


def _points(value: Tensor, axis: int, index: Tensor) -> bool:
    """Whether the index has the shape of a reduction or a selection along the axis."""
    shape = list(value.shape)
    kept = [*shape[:axis], *shape[axis + 1 :]]
    if list(index.shape) == kept:
        return True
    same = index.ndim == value.ndim and [*index.shape[:axis], *index.shape[axis + 1 :]] == kept
    return same and index.shape[axis] <= shape[axis]


def _picks_extreme(table: Tensor, axis: int, index: Tensor) -> bool:
    if not index.numel() or int(index.min()) < 0 or int(index.max()) >= table.shape[axis]:
        return False
    chosen = _at(table, axis, index)
    if index.ndim == table.ndim:
        chosen = chosen.select(axis, 0)
    extremes = table.amax(axis), table.amin(axis)
    return any(torch.equal(chosen, extreme) for extreme in extremes)


def _at(table: Tensor, axis: int, index: Tensor) -> Tensor:
    index = index.long()
    if index.ndim == table.ndim:
        return table.gather(axis, index)
    return table.gather(axis, index.unsqueeze(axis)).squeeze(axis)


def _unrounded(loaded: LoadedOperator, draw: DrawInput, number: int) -> Tensor | None:
    try:
        value = exact(loaded, draw, steps=False)[number]
    except OperatorFault:
        return None
    return value if isinstance(value, Tensor) and value.is_floating_point() else None


def _tensor(outputs: list[object], number: int) -> Tensor:
    value = outputs[number]
    assert isinstance(value, Tensor)
    return value
