"""The generator without a language model: a template, and a search over its schedules."""

import random
from collections.abc import Iterator
from itertools import islice

from agents.offline.axes import UncoveredError
from agents.offline.library import find
from agents.offline.template import Hints, Parameters, Template, neighbours, simpler
from data.records import Admission, Candidate, Mode, Proposal, Request, Shape, Strategy
from data.verdict import Outcome

SIZES = {"float32": 4, "int64": 8, "float64": 8, "int8": 1, "uint8": 1, "bool": 1}
AUTHORS = {Strategy.LADDER: "plain templates"}
"""Who begins with the plainest is another author: arms are compared within one."""
TRIES = 2000
"""Schedules looked at for one that was not tried."""


class OfflineGenerator:
    """Proposes schedules of the template that matches; the same request gives the same answer."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    async def propose(self, request: Request) -> Proposal:
        """A candidate never tried before, or NOT_COVERED with the reason in a sentence."""
        try:
            return self._propose(
                request, find(request.admission.graph, request.pair.brief.language)
            )
        except UncoveredError as reason:
            return _none(f"the offline library {reason}")

    def _propose(self, request: Request, template: Template) -> Proposal:
        tried = {i.candidate_id for i in request.history}
        schedules = {_key(i.candidate.parameters) for i in request.history if i.candidate}
        for parameters, why in islice(self._ideas(request, template), TRIES):
            if _key(parameters) in schedules:
                continue
            candidate = _candidate(request, template, parameters, why)
            if candidate.id not in tried:
                return Proposal(candidate=candidate)
        return _none("search space exhausted")

    def _ideas(self, request: Request, template: Template) -> Iterator[tuple[Parameters, str]]:
        """Schedules to try, best first, each with its reason."""
        start = _start(request, template, request.move.lineage)
        parent = _parent(request, template)
        mode = request.move.mode
        if mode is Mode.FIX and parent is not None:
            for parameters in simpler(parent, template.domains):
                yield parameters, "a simpler schedule"
        elif mode is Mode.OPTIMISE and parent is not None:
            yield from _advised(request, template, parent)
            start = parent
        else:
            foreign = _foreign(request, template)
            if foreign and not request.history:
                yield {**start, **foreign}, "the foreign kernel's schedule"
            yield start, f"the rule's schedule for lineage {request.move.lineage}"
        yield from self._around(request, template, start)

    def _around(
        self, request: Request, template: Template, start: Parameters
    ) -> Iterator[tuple[Parameters, str]]:
        """Neighbours of a schedule in seeded order, then theirs, until none is left."""
        seed = f"{self._seed}:{request.pair.operator.hash}:{request.move.step}"
        draw = random.Random(seed)
        seen, ring = {_key(start)}, [start]
        while ring:
            found = [n for p in ring for n in neighbours(p, template.domains)]
            ring = list({_key(n): n for n in found if _key(n) not in seen}.values())
            seen |= {_key(n) for n in ring}
            draw.shuffle(ring)
            for parameters in ring:
                yield parameters, "the next schedule not tried"


def _start(request: Request, template: Template, lineage: str) -> Parameters:
    """The rule's schedule; on a ladder the plainest, so that steps can add what a rule has."""
    if request.pair.settings.strategy is Strategy.LADDER:
        return {name: values[0] for name, values in template.domains.items()}
    return template.first(hints(request.admission, lineage))


def hints(admission: Admission, lineage: str) -> Hints:
    """What the admission says of the device and of the official shape."""
    full = next((s for s in admission.shapes if s.name == "full"), None)
    full = full or next(iter(admission.shapes), None)
    card = admission.card
    return Hints(
        simd=card.simd if card else "",
        cores=card.cores if card else 1,
        output_mib=_output_mib(full) if full else 0.0,
        lineage=lineage,
        processor=bool(card and card.simd and not card.simd.endswith("lanes")),
    )


def _output_mib(shape: Shape) -> float:
    total = 0
    for spec in shape.outputs:
        size = SIZES.get(spec.dtype, 4)
        for n in spec.shape:
            size *= n
        total += size
    return total / 2**20


def _parent(request: Request, template: Template) -> Parameters | None:
    """The parent's schedule, if it is one of this template."""
    candidate = request.parent.candidate if request.parent else None
    if candidate is None or set(candidate.parameters) != set(template.domains):
        return None
    return candidate.parameters


def _advised(
    request: Request, template: Template, parent: Parameters
) -> Iterator[tuple[Parameters, str]]:
    """The schedules that carry the analyst's tag, as near to the parent as can be."""
    advice = request.advice
    if advice is None:
        return
    wish = {k: v for k, v in advice.parameters.items() if v in template.domains.get(k, ())}
    for change in (wish, template.moves.get(advice.technique, {})):
        if change and {**parent, **change} != parent:
            yield {**parent, **change}, f"as advised: {advice.technique}"


def _foreign(request: Request, template: Template) -> Parameters:
    """What this template takes over from the kernel of another device that the pair is shown.

    The values that it has too, and what carries out a technique that its own first schedule lacks.
    """
    shown = request.pair.reference
    if shown is None:
        return {}
    own = set(template.techniques(_start(request, template, "a")))
    found: Parameters = {}
    for technique in shown.techniques:
        found |= {} if technique in own else template.moves.get(technique, {})
    domains = template.domains
    return found | {k: v for k, v in shown.parameters.items() if v in domains.get(k, ())}


def _candidate(request: Request, template: Template, parameters: Parameters, why: str) -> Candidate:
    parent, shown = request.move.parent, request.pair.reference
    schedule = ", ".join(f"{k} {v}" for k, v in parameters.items())
    return Candidate(
        source=template.render(request.pair.operator.source, parameters),
        language=request.pair.brief.language,
        agent_kind="offline",
        agent_name=AUTHORS.get(request.pair.settings.strategy, "templates"),
        parents=(parent,) if parent else (),
        reference=shown.candidate_id if shown and _foreign(request, template) else None,
        techniques=template.techniques(parameters),
        parameters=parameters,
        note=f"{template.family}, {why}: {schedule}",
    )


def _key(parameters: Parameters) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(parameters.items()))


def _none(reason: str) -> Proposal:
    return Proposal(candidate=None, outcome=Outcome.NOT_COVERED, reason=reason)
