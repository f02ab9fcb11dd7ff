"""What the outputs should be, and whether given ones are (JUDGE.md, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from data.records import Contract, Draw, OutputKind
from targets.remote.arena import dtype_of
from targets.remote.continuous import Continuous, Finding, close, continuous
from targets.remote.deviation import spare_threads
from targets.remote.discrete import Discrete, discrete, discrete_fault, kind_of
from targets.remote.draws import DrawInput, affordable
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.runs import Runs, real, run
from targets.remote.sizing import spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One output: its structure and how to compare it."""

    shape: tuple[int, ...]
    dtype: str
    content: Continuous | Discrete | None
    """None for a Python value, which must be equal to `plain`."""
    plain: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The exact outputs of one draw, with the limits for others."""

    shape: str
    distribution: str
    goals: tuple[Goal, ...]


def expected(loaded: LoadedOperator, draw: DrawInput, contract: Contract) -> Expected | None:
    """The exact outputs; None when the reference fails or is not finite: the draw does not count.

    Infinite outputs count where the float64 reference has them too, with the same sign.
    """
    with spare_threads() if affordable(loaded, draw.shape) else nullcontext():
        try:
            runs = run(loaded, draw, contract)
        except OperatorFault:
            return None
        goals = [_goal(loaded, runs, number) for number in range(len(runs.declared))]
    if any(goal is None for goal in goals):
        return None
    return Expected(
        shape=draw.shape,
        distribution=draw.distribution,
        goals=tuple(goal for goal in goals if goal is not None),
    )


def hollow(exp: Expected | None) -> list[Tensor]:
    """The outputs' forms, without values; empty ones for Python values, [] when none is known."""
    goals = () if exp is None else exp.goals
    return [
        torch.empty(g.shape if g.content is not None else 0, dtype=_form(g), device="meta")
        for g in goals
    ]


def _form(goal: Goal) -> torch.dtype:
    return torch.uint8 if goal.content is None else dtype_of(goal.dtype)


def structure(exp: Expected, outputs: Sequence[object]) -> str | None:
    """Fault of count, type, shape or dtype in words; None when all are right."""
    if len(outputs) != len(exp.goals):
        return f"{len(outputs)} outputs, expected {len(exp.goals)}"
    for number, (goal, output) in enumerate(zip(exp.goals, outputs, strict=True)):
        given = spec("", output)
        is_tensor = isinstance(output, Tensor)
        if is_tensor != (goal.content is not None):
            wanted = "a tensor" if goal.content is not None else goal.dtype
            return f"output {number} is a {type(output).__name__}, expected {wanted}"
        if given.shape != goal.shape:
            return f"output {number} has shape {given.shape}, expected {goal.shape}"
        if given.dtype != goal.dtype:
            return f"output {number} has dtype {given.dtype}, expected {goal.dtype}"
    return None


def compare(
    exp: Expected, outputs: Sequence[object], contract: Contract, *, places: bool = True
) -> Draw:
    """The comparison of all outputs; where it fails, `located` says what and where.

    `outputs` are the leaves of what the model returned, in order (`sizing.flatten`). Without
    `places` a deviation is found but not located, at half the cost.
    """
    fault = structure(exp, outputs)
    if fault is not None:
        return _draw(exp, [Finding(fault=fault)])
    pairs = list(zip(exp.goals, outputs, strict=True))
    with spare_threads():
        findings = [_finding(goal, output, contract, places=places) for goal, output in pairs]
    if len(findings) > 1:
        findings = [f.named(f"output {i}: ") for i, f in enumerate(findings)]
    return _draw(exp, findings)


def _draw(exp: Expected, findings: list[Finding]) -> Draw:
    faults = [f.fault for f in findings if f.fault]
    notes = [f.note for f in findings if f.note]
    return Draw(
        shape=exp.shape,
        distribution=exp.distribution,
        error=_largest([f.error for f in findings]),
        worst=_largest([f.worst for f in findings]),
        ok=not faults,
        located="; ".join(faults or notes),
    )


def _largest(values: list[float | None]) -> float | None:
    return max((v for v in values if v is not None), default=None)


def _finding(goal: Goal, output: object, contract: Contract, *, places: bool) -> Finding:
    if not isinstance(output, Tensor):
        return Finding(fault="" if output == goal.plain else "not the expected Python value")
    if isinstance(goal.content, Discrete):
        fault, note = discrete_fault(goal.content, output)
        return Finding(fault=fault, note=note)
    assert goal.content is not None
    return close(goal.content, real(output), contract.policy, places=places)


def _goal(loaded: LoadedOperator, runs: Runs, number: int) -> Goal | None:
    """What one output should be; None when it is not finite where it could be."""
    output = runs.declared[number]
    given = spec("", output)
    if not isinstance(output, Tensor):
        return Goal(shape=(), dtype=given.dtype, content=None, plain=output)
    kind = kind_of(loaded, output, number)
    content: Continuous | Discrete | None
    if kind is OutputKind.FLOAT:
        content = continuous(runs, number)
    else:
        content = discrete(loaded, runs.draw, (runs.declared, runs.exact), number)
    return Goal(shape=given.shape, dtype=given.dtype, content=content) if content else None
