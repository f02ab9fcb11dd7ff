"""Whether an operator can tell right from wrong, before anything is spent on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from data.records import Admission, Card, Contract, Operator, Shape
from data.verdict import Outcome
from targets.remote.continuous import Continuous
from targets.remote.deviation import deviation, exact_output, one_thread
from targets.remote.draws import FEW, affordable, draw, probe_shape, refill
from targets.remote.faults import (
    Judged,
    accepted,
    ignored,
    judged,
    planted,
    precision_decided,
    trivial,
)
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.oracle import declared
from targets.remote.roofline import floor_us
from targets.remote.runs import real
from targets.remote.sizing import Sizes, sizes

MAX_BYTES = 1e9
"""Tensors of one call: three processes and the oracle must hold them (JUDGE.md, section 2)."""
LARGEST_BYTES = 4e9
"""A single intermediate; twice that in float64."""
LONGEST_CALL_S = 0.06
"""At the measured float32 peak: 20 GFLOP at 0.33 TFLOP/s. A float64 reference takes ten times
longer, and a confirmation runs some forty of them."""
PROBES = (*FEW, "times 3 plus 1", "sorted rows", "times 0.05", "constant rows")
ENOUGH = 3
"""Draws that must count."""
HEADROOM = 1.10
"""Baseline over floor below which nothing is to be won."""
LOW_SENSITIVITY = 1e-2
RANDOM_ABOVE = 1e-3
"""Norm of the difference of two runs; summation order alone gives 1e-6, in half types 1e-4."""
ILL_CONDITIONED = 0.05
"""Own error of the reference, over its output, from which the limits say nothing."""


class _Refusal(Exception):  # noqa: N818 - it carries an outcome, it is no error
    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """What an operator is admitted under."""

    loaded: LoadedOperator
    contract: Contract
    card: Card


def admit(  # noqa: PLR0913 - the knobs of one call over the network
    operator: Operator,
    contract: Contract,
    card: Card,
    environment: dict[str, str],
    *,
    max_bytes: float = MAX_BYTES,
    baseline_us: dict[str, float] | None = None,
) -> Admission:
    """The operator's sizes, floors and graph, how well it is judged, or why it is refused.

    `baseline_us` holds the baseline's time by shape where it was measured.
    """
    known: dict[str, Any] = {"card": card, "environment": environment}
    try:
        terms = _Terms(loaded=LoadedOperator(operator), contract=contract, card=card)
        known |= _sized(terms, max_bytes)
        _headroom(known["shapes"], baseline_us or {}, card)
        with one_thread():
            known |= _probed(terms)
    except OperatorFault as fault:
        return Admission(
            outcome=Outcome.NOT_ADMITTED, reason=f"invalid reference: {fault}", **known
        )
    except _Refusal as refusal:
        return Admission(outcome=refusal.outcome, reason=str(refusal), **known)
    known["marks"] += _beyond(known["shapes"], baseline_us or {})
    reason = f"admitted; sees {known['oracle_strength']:.0%} of the planted faults"
    return Admission(outcome=None, reason=reason, graph=_graph(terms.loaded), **known)


def _probed(terms: _Terms) -> dict[str, Any]:
    """What the probes found; refuses an operator that cannot be judged."""
    cases = _cases(terms)
    _deterministic(terms, cases[0])
    _trivial(terms, cases)
    return _strength(terms, cases)


def _graph(loaded: LoadedOperator) -> Any:
    from targets.remote.trace import trace

    return trace(loaded, loaded.official)


def _sized(terms: _Terms, max_bytes: float) -> dict[str, Any]:
    """Shapes and parameters; refuses a call that is too large before anything is allocated."""
    loaded = terms.loaded
    shapes = []
    for name in loaded.shapes:
        size = sizes(loaded, name)
        _fits(name, size, max_bytes)
        _soon(name, size, terms.card)
        shapes.append(_shape(terms, name, size))
    return {"shapes": tuple(shapes), "parameters": sizes(loaded, loaded.official).parameters}


def _fits(name: str, size: Sizes, max_bytes: float) -> None:
    if size.bytes > max_bytes:
        raise _Refusal(
            Outcome.TOO_LARGE,
            f"one call at {name!r} has {size.bytes / 1e9:.2f} GB of inputs, parameters and "
            f"outputs; the limit is {max_bytes / 1e9:.2f} GB",
        )
    if size.largest > LARGEST_BYTES:
        raise _Refusal(
            Outcome.TOO_LARGE,
            f"one call at {name!r} makes a tensor of {size.largest / 1e9:.2f} GB on its way; "
            f"the limit is {LARGEST_BYTES / 1e9:.2f} GB",
        )


def _soon(name: str, size: Sizes, card: Card) -> None:
    """Refuses a call whose matrix products alone take too long at the measured peak."""
    peak = card.peak_tflop_s.get("float32")
    if peak and size.product_flops / (peak * 1e12) > LONGEST_CALL_S:
        raise _Refusal(
            Outcome.TOO_LARGE,
            f"one call at {name!r} is {size.product_flops / 1e9:.0f} GFLOP, at least "
            f"{size.product_flops / (peak * 1e12):.2f} s on this device; the limit is "
            f"{LONGEST_CALL_S} s, because a judgement takes some hundred calls",
        )


def _shape(terms: _Terms, name: str, size: Sizes) -> Shape:
    flops = terms.loaded.flops(name)
    moved = terms.loaded.moved_bytes(name)
    tensors = (*size.inputs, *size.outputs)
    dtypes = [t.dtype for t in tensors if "float" in t.dtype and t.dtype != "float"]
    moved = float(size.bytes) if moved is None else moved
    floor = floor_us(
        flops, moved, terms.card, terms.contract, dtype=dtypes[0] if dtypes else "float32"
    )
    return Shape(
        name=name,
        inputs=size.inputs,
        outputs=size.outputs,
        flops=flops,
        moved_bytes=moved,
        floor_us=floor,
    )


def _headroom(shapes: tuple[Shape, ...], baseline_us: dict[str, float], card: Card) -> None:
    """Refuses when every measured shape lies just above its floor in main memory."""
    timed = [s for s in shapes if s.name in baseline_us and s.floor_us]
    cached = [s for s in timed if s.moved_bytes <= card.cache_mib * 2**20]
    over = [baseline_us[s.name] / (s.floor_us or 1.0) for s in timed]
    if timed and not cached and all(1.0 <= ratio <= HEADROOM for ratio in over):
        worst = max(over)
        raise _Refusal(
            Outcome.NOT_ADMITTED,
            f"no headroom: the baseline is within {worst - 1:.0%} of the roofline floor "
            f"({timed[-1].floor_us:.0f} us at {timed[-1].name!r})",
        )


def _beyond(shapes: tuple[Shape, ...], baseline_us: dict[str, float]) -> tuple[str, ...]:
    below = [s for s in shapes if s.floor_us and baseline_us.get(s.name, s.floor_us) < s.floor_us]
    unknown = ["operation count unknown"] if any(s.flops is None for s in shapes) else []
    marks = [f"baseline below the floor at {s.name!r}: cached, or a wrong count" for s in below]
    return tuple(unknown + marks)


def _cases(terms: _Terms) -> list[Judged]:
    """The draws that count; official first."""
    loaded = terms.loaded
    shape = _working_shape(loaded)
    cases: list[Judged] = []
    for number, distribution in enumerate(PROBES):
        made = draw(loaded, shape, distribution, 101 + number)
        if number == 0:
            declared(loaded, made)  # a failing reference says why
        case = judged(loaded, made, terms.contract)
        if number == 0 and case is None:
            raise OperatorFault("its output is not finite for its own inputs")
        cases += [case] if case else []
        if len(cases) >= (ENOUGH + 1 if affordable(loaded, shape) else ENOUGH):
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


def _deterministic(terms: _Terms, case: Judged) -> None:
    """Refuses a reference that is random, or whose own error is near the output's size."""
    again = declared(terms.loaded, case.draw)
    if not all(map(_same, case.outputs, again)):
        raise OperatorFault("two runs on the same input differ: it is random")
    contents = (g.content for g in case.expected.goals)
    units = [c.strict.norm for c in contents if isinstance(c, Continuous)]
    if units and min(units) > ILL_CONDITIONED:
        raise _Refusal(
            Outcome.NOT_ADMITTED,
            f"ill-conditioned: the reference itself is off by {min(units):.0%} of its output",
        )


def _same(one: object, two: object) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor):
        return one == two
    if torch.equal(one, two) or not one.is_floating_point():
        return bool(torch.equal(one, two))
    close = deviation(exact_output(one.double(), terms=0.0), two.double().nan_to_num(0, 0, 0))
    return close.norm < RANDOM_ABOVE


def _trivial(terms: _Terms, cases: list[Judged]) -> None:
    """Refuses when an answer that needs no work is accepted under every draw."""
    others = [*cases[1:], cases[0]]
    standing: set[str] | None = None
    for case, other in zip(cases, others, strict=True):
        answers = trivial(terms.loaded, case, cases[0], other)
        taken = {n for n, a in answers.items() if accepted(case, a, terms.contract)}
        standing = taken if standing is None else standing & taken
        if not standing:
            return
    names = ", ".join(sorted(standing or ()))
    raise _Refusal(Outcome.NOT_ADMITTED, f"ill-posed: the comparison accepts {names}")


def _strength(terms: _Terms, cases: list[Judged]) -> dict[str, Any]:
    """Share of planted faults seen under any draw, and what is to be known of the operator."""
    loaded, contract = terms.loaded, terms.contract
    case = next((c for c in cases if c.draw.distribution == FEW[1]), cases[0])
    redundant = ignored(loaded, case, contract)
    names = [name for name, _ in planted(loaded, case, redundant)]
    missed = _missed(terms, [case, *cases], redundant)
    marks = [f"dropout of {n} set to 0" for n in loaded.silenced]
    marks += [f"parameter {n} ignored" for n in redundant]
    marks += [f"not seen: {n}" for n in missed]
    if any(isinstance(g.content, Continuous) for g in case.expected.goals):
        names.append("precision")
        if not precision_decided(loaded, case, contract):
            missed.append("precision")
            marks.append("precision undecided")
        if (value := _sensitivity(loaded, cases[0])) < LOW_SENSITIVITY:
            marks.append(f"low sensitivity to its inputs: {value:.1e}")
    return {"marks": tuple(marks), "oracle_strength": 1 - len(missed) / len(names)}


def _missed(terms: _Terms, cases: list[Judged], redundant: list[str]) -> list[str]:
    """Faults that no draw shows."""
    missed: list[str] | None = None
    for case in cases:
        if missed == []:
            break
        faults = planted(terms.loaded, case, redundant)
        taken = [n for n, out in faults if accepted(case, out, terms.contract)]
        missed = [n for n in taken if missed is None or n in missed]
    return missed or []


def _sensitivity(loaded: LoadedOperator, case: Judged) -> float:
    """rms(y(x1) - y(x2)) / rms(y) of the first floating output, x2 by the recipe again."""
    inputs = refill(loaded, case.draw.shape, 211)
    other = declared(loaded, replace(case.draw, inputs=inputs))
    for goal, output in zip(case.expected.goals, other, strict=True):
        if isinstance(goal.content, Continuous) and isinstance(output, torch.Tensor):
            return deviation(goal.content.exact, real(output)).norm
    return 1.0
