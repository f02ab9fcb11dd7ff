"""The method: port one operator to one device.

Two agents share the work. The generator writes a kernel and mends it from diagnostics and failing
indices; the analyst reads the profile of a right one and gives exactly one advice. Every step is
judged, recorded, and becomes part of the history, which is the only way back: what to do next is
decided from it alone (`agents/strategy.py`), so a run that was cut goes on where it stopped.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from agents.rows import described, judged, made, refused, repeated
from agents.strategy import next_move, starts_from_kernel
from data.records import (
    Admission,
    BuildResult,
    Candidate,
    Counsel,
    Iteration,
    MeasureJob,
    Mode,
    Move,
    Pair,
    Profile,
    Proposal,
    Request,
    RunResult,
    Strategy,
)
from data.tokens import essence
from data.verdict import judge

EXPLORE_PAIRS = 3
CONFIRM_PAIRS = 5
"""Pairs of fresh processes: enough to rank; enough for a 95 % interval (JUDGE.md, section 4)."""

History = tuple[Iteration, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What the loop asks of the world; each engine passes its own."""

    admit: Callable[[Pair], Awaitable[Admission]]
    propose: Callable[[Request], Awaitable[Proposal]]
    build: Callable[[MeasureJob], Awaitable[BuildResult]]
    measure: Callable[[MeasureJob], Awaitable[RunResult]]
    profile: Callable[[Admission, Iteration], Profile]
    advise: Callable[[Request], Awaitable[Counsel]]
    record: Callable[[Iteration], Awaitable[None]]
    now: Callable[[], str]


Iterate = Callable[[Pair, Admission, Stages, Move, History], Awaitable[Iteration | None]]


async def port(
    pair: Pair, stages: Stages, history: History = (), iterate: Iterate | None = None
) -> History:
    """All steps of the pair: functional pass, optimization pass, confirmation."""
    if next_move(history, pair.settings) is None:
        return history
    admission = await stages.admit(pair)
    if not admission.admitted:
        return (await _kept(refused(pair, admission, stages.now()), stages),)
    spent: frozenset[str] = frozenset()
    while move := next_move(history, pair.settings, spent):
        iteration = await (iterate or step)(pair, admission, stages, move, history)
        if iteration is None:
            spent |= {move.lineage}
        else:
            history = (*history, iteration)
    return history


async def step(
    pair: Pair, admission: Admission, stages: Stages, move: Move, history: History
) -> Iteration | None:
    """One step from advice to verdict, put on record; None when its lineage has no more to try."""
    started = stages.now()
    request = Request(pair=pair, admission=admission, move=move, history=history)
    advised = move.mode is Mode.OPTIMISE and pair.settings.strategy is not Strategy.SINGLE
    if advised and request.parent is not None:
        request = replace(request, profile=stages.profile(admission, request.parent))
        counsel = await stages.advise(request)
        if counsel.advice is None:
            return None
        request = replace(request, advice=counsel.advice)
        proposal = await _propose(request, stages)
        proposal = replace(proposal, calls=(*counsel.calls, *proposal.calls))
    else:
        proposal = await _propose(request, stages)
    if proposal.candidate is None and any(i.candidate for i in history):
        return None
    row = await _examine(made(request, proposal, started), request, stages)
    return await _kept(row, stages)


async def _propose(request: Request, stages: Stages) -> Proposal:
    """The candidate: the winner again, the given kernel, or what the generator writes."""
    parent = request.parent
    if request.move.mode is Mode.CONFIRM and parent is not None:
        return Proposal(candidate=parent.candidate)
    start = request.pair.settings.start
    if request.move.mode is Mode.TRANSLATE and start and starts_from_kernel(start):
        given = Candidate(
            source=start,
            language=request.pair.brief.language,
            agent_kind="given",
            agent_name="start",
        )
        return Proposal(candidate=given)
    return await stages.propose(request)


async def _examine(row: Iteration, request: Request, stages: Stages) -> Iteration:
    """The row with its evidence and verdict; a source judged before is not measured again."""
    if row.candidate is None or not row.candidate.source:
        return row
    if objection := request.pair.settings.guardrails.objection(row.candidate.source):
        return replace(row, reason=objection)
    twin = _twin(row.candidate, request.history)
    if twin is not None and row.move.mode is not Mode.CONFIRM:
        return repeated(row, twin)
    job = _job(row, request)
    build = await stages.build(job)
    runs = build.runs and job.device.execution != "none"
    run = await stages.measure(job) if runs else None
    row = described(replace(row, build=build, run=run), request)
    row = judged(row, judge(row.contract, build, run))
    return replace(row, profile=stages.profile(request.admission, row)) if row.right else row


def _twin(candidate: Candidate, history: History) -> Iteration | None:
    """The step that judged the same kernel: layout, comments and docstrings make no other."""
    wanted = essence(candidate.source)
    known = (i for i in history if i.candidate and i.candidate.language == candidate.language)
    return next((i for i in known if i.candidate and essence(i.candidate.source) == wanted), None)


async def _kept(row: Iteration, stages: Stages) -> Iteration:
    row = replace(row, ended_at=stages.now())
    await stages.record(row)
    return row


def _pairs(row: Iteration) -> int:
    if not row.device.timed:
        return 0
    return CONFIRM_PAIRS if row.move.mode is Mode.CONFIRM else EXPLORE_PAIRS


def _job(row: Iteration, request: Request) -> MeasureJob:
    assert row.candidate is not None
    confirming = row.move.mode is Mode.CONFIRM
    parent = request.parent.candidate if request.parent and request.parent.right else None
    return MeasureJob(
        operator=row.operator,
        device=row.device,
        contract=row.contract,
        source=row.candidate.source,
        parent_source=parent.source if parent and not confirming else None,
        pairs=_pairs(row),
        thorough=confirming,
        scales=request.admission.scales,
    )
