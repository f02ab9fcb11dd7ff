"""Whether the comparison tells an operator's right answers from wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from data.oracle import Oracle, Strength
from data.records import Contract
from data.verdict import Outcome
from targets.remote import branches
from targets.remote.continuous import Continuous
from targets.remote.deviation import deviation, exact_output
from targets.remote.draws import FEW, affordable, draw, parameters, probe_shape, refill
from targets.remote.faults import (
    SCALES,
    Judged,
    Unseen,
    accepted,
    decided,
    judged,
    planted,
    trivial,
    unseen,
)
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.oracle import declared
from targets.remote.recipe import seeded
from targets.remote.runs import real

PROBES = (*FEW, "times 3 plus 1", "sorted rows", "times 0.05", "constant rows")
ENOUGH = 3
"""Draws that must count."""
RANDOM_ABOVE = 1e-3
"""Norm of the difference of two runs; summation order alone gives 1e-6, in half types 1e-4."""
ILL_CONDITIONED = 0.05
"""Own error of the reference, over its output, from which the limits say nothing."""
LOW_SENSITIVITY = 1e-2


class Refusal(Exception):  # noqa: N818 - it carries an outcome, it is no error
    """Why an operator is not admitted."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What is known of an operator that can be judged."""

    oracle: Oracle
    marks: tuple[str, ...]
    """Observations that refuse nothing, in words."""


def probe(loaded: LoadedOperator, contract: Contract) -> Probed:
    """What the probes found. Raises Refusal or OperatorFault for one that cannot be judged."""
    cases = _cases(loaded, contract)
    _deterministic(loaded, cases[0])
    official = _trivial(loaded, contract, cases)
    case = next((c for c in cases if c.draw.distribution == FEW[1]), cases[0])
    oracle = _oracle(loaded, contract, [case, *(c for c in cases if c is not case)])
    return Probed(oracle=oracle, marks=(*official, *_marks(loaded, oracle, case)))


def _cases(loaded: LoadedOperator, contract: Contract) -> list[Judged]:
    """The draws that count; official first."""
    shape = _working_shape(loaded)
    enough = ENOUGH + 1 if affordable(loaded, shape) else ENOUGH
    cases: list[Judged] = []
    for number, distribution in enumerate(PROBES):
        made = draw(loaded, shape, distribution, 101 + number)
        if number == 0:
            declared(loaded, made)  # a failing reference says why
        case = judged(loaded, made, contract)
        if number == 0 and case is None:
            raise OperatorFault("its output is not finite for its own inputs")
        cases += [case] if case else []
        if len(cases) >= enough:
            return cases
    if len(cases) < ENOUGH:
        raise OperatorFault(f"only {len(cases)} of {len(PROBES)} distributions give finite outputs")
    return cases


def _working_shape(loaded: LoadedOperator) -> str:
    """The probe shape, or the official one where real values refuse the cut (class indices)."""
    shape = probe_shape(loaded)
    try:
        declared(loaded, draw(loaded, shape, PROBES[0], 101))
    except OperatorFault:
        if shape in loaded.shapes:
            raise
        return loaded.official
    return shape


def _deterministic(loaded: LoadedOperator, case: Judged) -> None:
    """Refuses a reference that is random, or whose own error is near the output's size."""
    for seed in (1, 2):
        with seeded(seed):
            again = declared(loaded, case.draw)
        if not all(map(_same, case.outputs, again)):
            raise OperatorFault("two runs on the same input differ: it is random")
    units = [c.strict.norm for c in _continuous(case)]
    if units and min(units) > ILL_CONDITIONED:
        raise Refusal(
            Outcome.NOT_ADMITTED,
            f"ill-conditioned: the reference itself is off by {min(units):.0%} of its output",
        )


def _continuous(case: Judged) -> list[Continuous]:
    contents = (g.content for g in case.expected.goals)
    return [c for c in contents if isinstance(c, Continuous)]


def _same(one: object, two: object) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor):
        return one == two
    if torch.equal(one, two) or not one.is_floating_point():
        return bool(torch.equal(one, two))
    exact = exact_output(one.double(), lambda: 0.0)
    close = deviation(exact, two.double().nan_to_num(0, 0, 0))
    return close.norm < RANDOM_ABOVE


def _trivial(
    loaded: LoadedOperator, contract: Contract, cases: Sequence[Judged]
) -> tuple[str, ...]:
    """Refuses when an answer that needs no work is accepted under every draw.

    Returns a mark where one is accepted under the official inputs alone.
    """
    others = [*cases[1:], cases[0]]
    standing: set[str] | None = None
    marks: tuple[str, ...] = ()
    for case, other in zip(cases, others, strict=True):
        answers = trivial(loaded, case, cases[0], other)
        taken = {n for n, a in answers.items() if accepted(case, a, contract)}
        standing = taken if standing is None else standing & taken
        if not standing:
            return marks
        marks = marks or (f"official inputs alone accept {', '.join(sorted(standing))}",)
    names = ", ".join(sorted(standing or ()))
    raise Refusal(Outcome.NOT_ADMITTED, f"ill-posed: the comparison accepts {names}")


def _oracle(loaded: LoadedOperator, contract: Contract, cases: Sequence[Judged]) -> Oracle:
    """The numbers of the report; `cases` begin with the zero-mean one."""
    case = cases[0]
    without = unseen(loaded, case, contract)
    strengths = _strengths(loaded, contract, cases, without)
    scale: float | None = None
    contents = _continuous(case)
    if contents:
        deciding = decided(loaded, case, contract)
        scale = deciding.scale if deciding else None
        strengths.append(Strength(kind="precision", planted=1, seen=int(scale is not None)))
    seen = [branches.shares(loaded, c.draw) for c in cases]
    one_sided = branches.dead(seen)
    hidden = branches.taken(loaded, case.draw, one_sided, SCALES[1:])
    return Oracle(
        strengths=tuple(strengths),
        sensitivity=_sensitivity(loaded, cases),
        parameter_sensitivity=_parameter_sensitivity(loaded, case),
        own_error=max((c.strict.norm for c in contents), default=None),
        ignored=without.ignored,
        redundant=without.redundant,
        dead=tuple(n for n in one_sided if n not in hidden),
        hidden=tuple(hidden),
        precision_scale=scale,
        scales=tuple(sorted({float(s) for s in hidden.values()})),
    )


def _strengths(
    loaded: LoadedOperator, contract: Contract, cases: Sequence[Judged], without: Unseen
) -> list[Strength]:
    """By kind: a fault that any draw shows is seen."""
    kinds: dict[str, str] = {}
    missed: set[str] | None = None
    for case in cases:
        if missed is not None and not missed:
            break
        taken = set()
        for fault in planted(loaded, case, without):
            kinds.setdefault(fault.name, fault.kind)
            if (missed is None or fault.name in missed) and accepted(case, fault.outputs, contract):
                taken.add(fault.name)
        missed = taken if missed is None else missed & taken
    names = {kind: [n for n, k in kinds.items() if k == kind] for kind in kinds.values()}
    return [
        Strength(kind=kind, planted=len(n), seen=len(set(n) - (missed or set())))
        for kind, n in names.items()
    ]


def _sensitivity(loaded: LoadedOperator, cases: Sequence[Judged]) -> float | None:
    """Of the first floating output to new inputs by the official recipe."""
    case = next((c for c in cases if c.draw.distribution == FEW[0]), cases[0])
    inputs = refill(loaded, case.draw.shape, 211)
    return _change(case, declared(loaded, replace(case.draw, inputs=inputs)))


def _parameter_sensitivity(loaded: LoadedOperator, case: Judged) -> float | None:
    if not case.draw.state:
        return None
    state = parameters(loaded, case.draw.shape, 223)
    return _change(case, declared(loaded, replace(case.draw, state=state)))


def _change(case: Judged, outputs: Sequence[object]) -> float | None:
    for goal, output in zip(case.expected.goals, outputs, strict=True):
        if isinstance(goal.content, Continuous) and isinstance(output, torch.Tensor):
            if output.shape != goal.shape:
                return None
            return deviation(goal.content.exact, real(output)).norm
    return None


def _marks(loaded: LoadedOperator, oracle: Oracle, case: Judged) -> tuple[str, ...]:
    marks = [f"dropout of {n} set to 0" for n in loaded.silenced]
    marks += [f"parameter {n} ignored" for n in oracle.ignored]
    marks += [f"parameter {n} redundant" for n in oracle.redundant]
    marks += [f"dead branch {n}" for n in oracle.dead]
    marks += [f"branch {n} hidden from the official inputs" for n in oracle.hidden]
    missed = [s for s in oracle.strengths if s.seen < s.planted and s.kind != "precision"]
    marks += [f"not all seen: {s}" for s in missed]
    if _continuous(case) and oracle.precision_scale is None:
        marks.append("precision undecided")
    if oracle.sensitivity is not None and oracle.sensitivity < LOW_SENSITIVITY:
        marks.append(f"low sensitivity to its inputs: {oracle.sensitivity:.1e}")
    return tuple(marks)
