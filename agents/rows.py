"""The row of a step as it grows: made, described, judged; the loop fills it from its stages."""

from dataclasses import replace

from data.records import Admission, Iteration, Mode, Move, Pair, Proposal, Request
from data.techniques import detect
from data.verdict import Judgement, Verdict


def made(request: Request, proposal: Proposal, started: str) -> Iteration:
    """The row as it is before anything was built: no code, or not covered."""
    pair = request.pair
    return Iteration(
        run_id=pair.run_id,
        epoch=pair.epoch,
        operator=pair.operator,
        device=pair.device,
        contract=pair.contract,
        move=request.move,
        verdict=proposal.outcome or Verdict.NO_CODE,
        reason=proposal.reason or (proposal.candidate.parse_status if proposal.candidate else ""),
        candidate=proposal.candidate,
        advice=request.advice,
        calls=proposal.calls,
        environment=request.admission.environment,
        started_at=started,
    )


def repeated(row: Iteration, twin: Iteration) -> Iteration:
    """A source that was judged before is not measured again."""
    reason = f"the same source as step {twin.move.step}: {twin.reason}"
    return replace(
        row,
        verdict=twin.verdict,
        reason=reason,
        needs_review=twin.needs_review,
        build=twin.build,
        run=twin.run,
        detected=twin.detected,
        speedup=twin.speedup,
        speedup_low=twin.speedup_low,
        speedup_high=twin.speedup_high,
        baseline=twin.baseline,
    )


def described(row: Iteration, request: Request) -> Iteration:
    """The row with the techniques found in the source and those that its parent had not."""
    assert row.candidate is not None
    detected = detect(row.candidate.source, row.candidate.language)
    parent = request.parent
    before = _techniques(parent) if parent else frozenset()
    now = frozenset(row.candidate.techniques or detected)
    added = tuple(sorted(now - before)) if row.move.mode is not Mode.CONFIRM else ()
    return replace(row, detected=detected, techniques_added=added)


def _techniques(iteration: Iteration) -> frozenset[str]:
    declared = iteration.candidate.techniques if iteration.candidate else ()
    return frozenset(declared or iteration.detected)


def judged(row: Iteration, judgement: Judgement) -> Iteration:
    return replace(
        row,
        verdict=judgement.verdict,
        reason=judgement.reason,
        needs_review=judgement.needs_review,
        speedup=judgement.speedup,
        speedup_low=judgement.low,
        speedup_high=judgement.high,
        gain_over_parent=judgement.gain_over_parent,
        baseline=judgement.baseline,
    )


def refused(pair: Pair, admission: Admission, started: str) -> Iteration:
    """The row of a pair that ends before a candidate; nothing is booked on anybody."""
    assert admission.outcome is not None
    return Iteration(
        run_id=pair.run_id,
        epoch=pair.epoch,
        operator=pair.operator,
        device=pair.device,
        contract=pair.contract,
        move=Move(mode=Mode.ADMIT, step=0, lineage=""),
        verdict=admission.outcome,
        reason=admission.reason,
        environment=admission.environment,
        started_at=started,
    )
