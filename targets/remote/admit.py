"""Whether an operator can tell right from wrong, before anything is spent on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from data.codec import dumps, loads
from data.records import Admission, Card, Contract, Node, Operator, Shape, digest
from data.verdict import Outcome
from targets.remote import continuous
from targets.remote.deviation import spare_threads
from targets.remote.draws import probe_shape
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.probes import PROBES, Probed, Refusal, probe
from targets.remote.roofline import floor_us
from targets.remote.sizing import Sizes, sizes

MAX_BYTES = 1e9
"""Tensors of one call: three processes and the oracle must hold them (JUDGE.md, section 2)."""
LARGEST_BYTES = 4e9
"""A single intermediate; twice that in float64."""
LONGEST_CALL_S = 0.06
"""At the measured float32 peak: 20 GFLOP at 0.33 TFLOP/s. Longer calls can be judged, with fewer
draws and pairs: a product of 137 GFLOP in 200 s, a convolution of 139 in some 500 (the float64
reference alone takes 24 s, on two busy cores). A suite that holds twenty of them takes hours."""
PROBED_FLOPS = 2e10
"""Of a call that is probed in a report only: a second or two in float64."""
HEADROOM = 1.10
"""Baseline over floor below which nothing is to be won."""
NEAR_PEAK = "baseline within 10% of the library's own peak: little headroom"
FORM = "3"
"""Of what is kept; another one when the probes or the graph change."""
RULES = (continuous.FACTOR, continuous.HALF_NORM, continuous.HALF_WORST, continuous.ONE_ROUNDING)

Times = Mapping[str, float]
"""Microseconds of the faster stock form by shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What an operator is admitted under."""

    contract: Contract
    card: Card
    environment: Mapping[str, str]
    cache: Path | None = None
    """Where the probes' findings are kept by content."""
    timed: Callable[[str], float] | None = None
    """Measures the baseline at a shape; None where nothing is timed."""
    insist: bool = False
    """Probes an operator that is too large for its device at a smaller shape nevertheless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the probes say of an operator, whatever the device: kept by content."""

    probed: Probed | None
    outcome: Outcome | None = None
    reason: str = ""
    graph: tuple[Node, ...] = ()


def admit(operator: Operator, terms: Terms) -> Admission:
    """The operator's sizes, floors and graph, how well it is judged, or why it is refused."""
    began = time.monotonic()
    blank = Admission(outcome=None, reason="", card=terms.card, environment=dict(terms.environment))
    try:
        admission = _admitted(LoadedOperator(operator), operator, terms, blank)
    except OperatorFault as fault:
        reason = f"invalid reference: {fault}"
        admission = replace(blank, outcome=Outcome.NOT_ADMITTED, reason=reason)
    return replace(admission, seconds=round(time.monotonic() - began, 3))


def _admitted(
    loaded: LoadedOperator, operator: Operator, terms: Terms, blank: Admission
) -> Admission:
    sized = _sized(loaded, terms, blank)
    large = sized.outcome is not None
    if large and not (terms.insist and _fits(loaded, probe_shape(loaded))):
        return sized
    found = _with(sized, _remembered(loaded, operator, terms, large=large))
    if large:
        besides = f" (and not admitted elsewhere: {found.reason})" if found.outcome else ""
        return replace(found, outcome=sized.outcome, reason=f"{sized.reason}{besides}")
    return found if found.outcome or terms.timed is None else _timed(found, loaded, terms)


def _fits(loaded: LoadedOperator, shape: str) -> bool:
    """Whether the oracle can hold and make this shape, however long a judgement would take."""
    size = sizes(loaded, shape)
    return _too_large(shape, size) is None and size.product_flops <= PROBED_FLOPS


def _with(admission: Admission, findings: Findings) -> Admission:
    if findings.probed is None:
        return replace(admission, outcome=findings.outcome, reason=findings.reason)
    share = findings.probed.oracle.share
    unknown = any(s.flops is None for s in admission.shapes)
    return replace(
        admission,
        outcome=None,
        reason=f"admitted; sees {share or 0:.0%} of the planted faults",
        oracle=findings.probed.oracle,
        marks=(*findings.probed.marks, *(["operation count unknown"] if unknown else [])),
        graph=findings.graph,
    )


def _remembered(
    loaded: LoadedOperator, operator: Operator, terms: Terms, *, large: bool
) -> Findings:
    """The findings, from the cache when operator, contract, rules and torch are the same."""
    known = (FORM, operator.hash, str(terms.contract), torch.__version__, str((RULES, PROBES)))
    path = (
        terms.cache / "admissions" / f"{digest(*known, str(large))}.json" if terms.cache else None
    )
    if path is not None and path.exists():
        return loads(Findings, path.read_text())
    findings = _findings(loaded, terms.contract, traced=not large)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(dumps(findings))
        fresh.replace(path)
    return findings


def _findings(loaded: LoadedOperator, contract: Contract, *, traced: bool) -> Findings:
    try:
        with spare_threads():
            probed = probe(loaded, contract)
    except Refusal as refusal:
        return Findings(probed=None, outcome=refusal.outcome, reason=str(refusal))
    except OperatorFault as fault:
        reason = f"invalid reference: {fault}"
        return Findings(probed=None, outcome=Outcome.NOT_ADMITTED, reason=reason)
    return Findings(probed=probed, graph=_graph(loaded) if traced else ())


def _graph(loaded: LoadedOperator) -> tuple[Node, ...]:
    from targets.remote.trace import trace

    return trace(loaded, loaded.official)


def _sized(loaded: LoadedOperator, terms: Terms, blank: Admission) -> Admission:
    """With shapes and parameters; TOO_LARGE before anything of that size is allocated."""
    found = {name: sizes(loaded, name) for name in loaded.shapes}
    large = (_too_large(n, s) or _too_long(n, s, terms.card) for n, s in found.items())
    refusal = next(filter(None, large), None)
    official = found[loaded.official]
    return replace(
        blank,
        outcome=refusal.outcome if refusal else None,
        reason=str(refusal or ""),
        shapes=tuple(_shape(loaded, terms, n, s) for n, s in found.items()),
        parameters=official.parameters,
        call_bytes=official.bytes,
    )


def _too_large(name: str, size: Sizes) -> Refusal | None:
    if size.bytes > MAX_BYTES:
        return Refusal(
            Outcome.TOO_LARGE,
            f"one call at {name!r} has {size.bytes / 1e9:.2f} GB of inputs, parameters and "
            f"outputs; the limit is {MAX_BYTES / 1e9:.2f} GB",
        )
    if size.largest > LARGEST_BYTES:
        return Refusal(
            Outcome.TOO_LARGE,
            f"one call at {name!r} makes a tensor of {size.largest / 1e9:.2f} GB on its way; "
            f"the limit is {LARGEST_BYTES / 1e9:.2f} GB",
        )
    return None


def _too_long(name: str, size: Sizes, card: Card) -> Refusal | None:
    """A call whose matrix products alone take too long at the measured peak."""
    peak = card.peak_tflop_s.get("float32")
    if not peak or size.product_flops / (peak * 1e12) <= LONGEST_CALL_S:
        return None
    return Refusal(
        Outcome.TOO_LARGE,
        f"one call at {name!r} is {size.product_flops / 1e9:.0f} GFLOP, at least "
        f"{size.product_flops / (peak * 1e12):.2f} s on this device; the limit is "
        f"{LONGEST_CALL_S} s, because a judgement takes some hundred calls",
    )


def _shape(loaded: LoadedOperator, terms: Terms, name: str, size: Sizes) -> Shape:
    flops = loaded.flops(name)
    moved = loaded.moved_bytes(name)
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


def _timed(admission: Admission, loaded: LoadedOperator, terms: Terms) -> Admission:
    """With the baseline's time at the official shape, set against its floor."""
    assert terms.timed is not None
    times = {loaded.official: terms.timed(loaded.official)}
    return against_floor(admission, times, terms.card)


def against_floor(admission: Admission, times: Times, card: Card) -> Admission:
    """Refused when every timed shape lies just above the time that moving its bytes takes.

    A floor of operations is made with the peak of the library's own matrix product, which a kernel
    may beat: near it an operator is marked. A floor that the baseline beats is none: it is
    forgotten, and marked.
    """
    known = replace(admission, baseline_us=dict(times))
    timed = [s for s in known.shapes if s.name in times and s.floor_us]
    over = {s.name: times[s.name] / (s.floor_us or 1.0) for s in timed}
    near = bool(timed) and all(1.0 <= ratio <= HEADROOM for ratio in over.values())
    if near and all(_moves_bytes(s, card) for s in timed):
        last = timed[-1]
        reason = (
            f"no headroom: the baseline is within {max(over.values()) - 1:.0%} of the roofline "
            f"floor ({last.floor_us:.0f} us at {last.name!r})"
        )
        return replace(known, outcome=Outcome.NOT_ADMITTED, reason=reason)
    if near and not any(s.moved_bytes <= card.cache_mib * 2**20 for s in timed):
        known = replace(known, marks=(*known.marks, NEAR_PEAK))
    below = [name for name, ratio in over.items() if ratio < 1.0]
    marks = [f"baseline below the floor at {n!r}: cached, or a wrong count" for n in below]
    shapes = tuple(replace(s, floor_us=None) if s.name in below else s for s in known.shapes)
    return replace(known, shapes=shapes, marks=(*known.marks, *marks))


def _moves_bytes(shape: Shape, card: Card) -> bool:
    """Whether the floor is the traffic of main memory: no kernel can have less."""
    traffic_us = shape.moved_bytes / (card.peak_gb_s * 1e3) if card.peak_gb_s > 0 else 0.0
    cached = shape.moved_bytes <= card.cache_mib * 2**20
    return not cached and traffic_us >= (shape.floor_us or 0.0)
