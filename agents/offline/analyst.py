"""The analyst without a language model: rules over the roofline and the compiler's remarks."""

from collections.abc import Iterator
from dataclasses import dataclass

from agents.offline.axes import UncoveredError
from agents.offline.generator import hints
from agents.offline.library import find
from data.records import (
    Advice,
    Bottleneck,
    Counsel,
    Evidence,
    Iteration,
    Profile,
    Request,
)

CLOSE_TO_FLOOR = 1.10
"""Time over the roofline floor at which nothing is left to win (DESIGN, section 5)."""
LAUNCH_SHARE = 0.5
"""Share of an empty call in the time from which on the call itself is what costs."""
HIGH_BANDWIDTH = 0.85
"""Share of the measured peak that ordinary loads and stores reach."""
FAILED_BELOW = 0.98
"""Gain over the parent under which an advice counts as failed."""
IDLE_ON_PROCESSORS = {"parallel_inner"}
"""There the threads of a group take turns on one core: a shared row costs barriers, buys nothing.
Of 23 such steps on OpenCL and SYCL processors the median had 0.3 of its parent's speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One change that helps against a bottleneck."""

    technique: str
    change: str
    gain: float
    """Expected time ratio, before over after."""


MEMORY = (
    Remedy(technique="streaming_store", change="write results past the caches", gain=1.25),
    Remedy(technique="fuse_epilogue", change="do the elementwise tail in the same loop", gain=1.5),
    Remedy(technique="vectorize", change="load and store whole vectors", gain=1.3),
    Remedy(technique="parallel_outer", change="give smaller blocks of rows to threads", gain=1.1),
    Remedy(technique="prefetch", change="request rows ahead of their use", gain=1.05),
    Remedy(technique="unroll", change="keep more loads in flight", gain=1.1),
    Remedy(technique="cache_block", change="work on blocks that stay in cache", gain=1.1),
    Remedy(technique="vector_load", change="read four neighbouring floats at once", gain=1.15),
    Remedy(technique="split_reduction", change="let threads share the long axis", gain=1.2),
    Remedy(technique="parallel_inner", change="give a row to more threads", gain=1.1),
    Remedy(technique="warp_reduce", change="give a row to threads that shuffle", gain=1.1),
)
COMPUTE = (
    Remedy(technique="vectorize", change="use the widest vectors of the machine", gain=1.5),
    Remedy(technique="fast_math_poly", change="evaluate functions by polynomials", gain=1.5),
    Remedy(technique="multi_accumulator", change="sum into independent accumulators", gain=1.3),
    Remedy(technique="register_tile", change="keep a block of results in registers", gain=1.3),
    Remedy(technique="unroll", change="overlap independent iterations", gain=1.15),
    Remedy(technique="pack", change="copy operands into the order they are read in", gain=1.2),
    Remedy(technique="cache_block", change="work on blocks that stay in cache", gain=1.15),
    Remedy(technique="tile", change="share tiles of the operands in a block", gain=1.3),
    Remedy(technique="parallel_outer", change="give smaller tiles to more blocks", gain=1.1),
)
LATENCY = (
    Remedy(technique="multi_accumulator", change="break the chain of one accumulator", gain=1.3),
    Remedy(technique="unroll", change="overlap independent iterations", gain=1.2),
    Remedy(technique="vectorize", change="do more in each instruction", gain=1.3),
    Remedy(technique="parallel_outer", change="give smaller blocks to threads", gain=1.15),
    Remedy(technique="streaming_store", change="write results past the caches", gain=1.15),
    Remedy(technique="prefetch", change="request data ahead of their use", gain=1.05),
    Remedy(technique="split_reduction", change="let threads share the long axis", gain=1.2),
    Remedy(technique="recompute", change="compute again in place of a buffer", gain=1.05),
    Remedy(technique="cache_block", change="work on blocks that stay in cache", gain=1.1),
    Remedy(technique="vector_load", change="read four neighbouring floats at once", gain=1.15),
    Remedy(technique="parallel_inner", change="give a row to more threads", gain=1.2),
    Remedy(technique="warp_reduce", change="give a row to threads that shuffle", gain=1.1),
)
REMEDIES = {
    Bottleneck.MEMORY: MEMORY,
    Bottleneck.COMPUTE: COMPUTE,
    Bottleneck.LATENCY: LATENCY,
}


class RuleAnalyst:
    """One advice from the numbers of the profile; every number that it uses is cited."""

    async def advise(self, request: Request) -> Counsel:
        """Advice, or the reason why nothing is worth trying."""
        profile = request.profile
        if profile is None or not profile.metrics:
            return Counsel(advice=None, reason="no profile: the candidate was not timed")
        if (reason := _finished(profile)) is not None:
            return Counsel(advice=None, reason=reason)
        bottleneck, evidence = _bottleneck(profile)
        remedy = next(_open(request, bottleneck), None)
        if remedy is None:
            return Counsel(
                advice=None,
                reason=f"every remedy of the rules against a {bottleneck} bound was tried",
            )
        return Counsel(advice=_advice(remedy, bottleneck, evidence, profile))


def _finished(profile: Profile) -> str | None:
    """Why no change of the kernel can pay; None when one can."""
    over = profile.value("time_over_floor")
    if over is not None and over <= CLOSE_TO_FLOOR:
        return f"time_over_floor {over:.2f}: within 10 % of the roofline floor"
    share = profile.value("null_share")
    if share is not None and share >= LAUNCH_SHARE:
        return f"null_share {share:.2f}: launch-bound, an empty call takes as long"
    return None


def _bottleneck(profile: Profile) -> tuple[Bottleneck, tuple[Evidence, ...]]:
    """The roof that the kernel is under, and the numbers that say so."""
    intensity = profile.value("arithmetic_intensity")
    balance = profile.value("machine_balance")
    if intensity is None or balance is None:
        return _by_shares(profile)
    evidence = _cited(profile, "arithmetic_intensity", "machine_balance")
    if intensity > balance:
        return Bottleneck.COMPUTE, evidence + _cited(profile, "compute_share")
    bandwidth = profile.value("bandwidth_share")
    evidence += _cited(profile, "bandwidth_share", "compute_share")
    compute = profile.value("compute_share")
    if bandwidth is not None and compute is not None and compute > bandwidth:
        return Bottleneck.COMPUTE, evidence
    if bandwidth is not None and bandwidth < 0.25:
        return Bottleneck.LATENCY, evidence
    return Bottleneck.MEMORY, evidence


def _by_shares(profile: Profile) -> tuple[Bottleneck, tuple[Evidence, ...]]:
    evidence = _cited(profile, "bandwidth_share", "compute_share", "time_over_floor")
    bandwidth = profile.value("bandwidth_share")
    if bandwidth is None or bandwidth < 0.25:
        return Bottleneck.LATENCY, evidence or _cited(profile, profile.metrics[0].name)
    return Bottleneck.MEMORY, evidence


def _cited(profile: Profile, *names: str) -> tuple[Evidence, ...]:
    """The named metrics that the profile has."""
    found = [(n, profile.value(n)) for n in names]
    return tuple(Evidence(metric=n, value=v) for n, v in found if v is not None)


def _open(request: Request, bottleneck: Bottleneck) -> Iterator[Remedy]:
    """Remedies that the parent does not have, that did not fail and that can be carried out."""
    parent = request.parent
    candidate = parent.candidate if parent else None
    has = set(candidate.techniques if candidate else ()) | set(parent.detected if parent else ())
    failed = {i.advice.technique for i in request.history if i.advice and _failed(i)}
    legal = _legal(request)
    for remedy in REMEDIES[bottleneck]:
        known = legal is None or remedy.technique in legal
        if known and remedy.technique not in has | failed:
            yield remedy


def _legal(request: Request) -> set[str] | None:
    """Techniques that the parent's template can still carry out; None without a template."""
    candidate = request.parent.candidate if request.parent else None
    if candidate is None or candidate.agent_kind != "offline":
        return None
    try:
        template = find(request.admission.graph, candidate.language)
    except UncoveredError:
        return None
    now = candidate.parameters
    idle = IDLE_ON_PROCESSORS if hints(request.admission, "").processor else set[str]()
    moves = {tag: change for tag, change in template.moves.items() if tag not in idle}
    changed = {tag: {**now, **change} for tag, change in moves.items()}
    # A move may be idle beside another choice: tiles, where operands are packed into panels.
    return {t for t, new in changed.items() if new != now and t in template.techniques(new)}


def _failed(iteration: Iteration) -> bool:
    """Whether the step that carried out an advice brought nothing."""
    gain = iteration.gain_over_parent
    return not iteration.right or gain is None or gain < FAILED_BELOW


def _advice(
    remedy: Remedy,
    bottleneck: Bottleneck,
    evidence: tuple[Evidence, ...],
    profile: Profile,
) -> Advice:
    over = profile.value("time_over_floor")
    missed = profile.value("loops_missed")
    if remedy.technique == "vectorize" and missed:
        evidence += _cited(profile, "loops_missed")
    if over is not None:
        evidence += tuple(e for e in _cited(profile, "time_over_floor") if e not in evidence)
    return Advice(
        bottleneck=bottleneck,
        evidence=evidence,
        change=remedy.change,
        technique=remedy.technique,
        expected_gain=min(remedy.gain, over) if over is not None else remedy.gain,
        confidence=0.6 if over is not None else 0.3,
    )
