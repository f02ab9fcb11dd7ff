"""One case through the real judge: build, sandboxed child, oracle, verdict; untimed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from data.records import Device, MeasureJob
from data.verdict import Verdict, judge
from targets.remote.build import build
from targets.remote.measure import measure
from targets.remote.sandbox import Limits
from targets.remote.zygote import Zygote
from tests.mutation.corpus import Case

DEVICE = Device(name="cpu", target="cpu", vendor="any", arch="x86_64")
DEADLINE_S = 120.0
ACCEPTED = (Verdict.CORRECT, Verdict.FASTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """What the judge said of a case."""

    case: str
    operator: str
    kind: str | None
    verdict: str
    reason: str
    draw: str
    """The distribution of the last draw: the one that decided."""
    seconds: float

    @property
    def as_it_should(self) -> bool:
        """A mutant that does not even compile says nothing of the judge."""
        if self.kind is None:
            return self.verdict in ACCEPTED
        return self.verdict not in (*ACCEPTED, Verdict.BUILD_FAILED)


@contextmanager
def warm(cache: Path) -> Iterator[Zygote]:
    """The process that children are forked from, once it is warm."""
    import torch._dynamo  # noqa: F401 - fake tensors need it: 3 s, once instead of in each fork

    zygote = Zygote(cache)
    try:
        child = zygote.child(Limits(memory_bytes=1 << 30, seconds=60.0))
        child.kill()
        child.end()
        yield zygote
    finally:
        zygote.close()


def ruled(case: Case, *, zygote: Zygote, seed: int) -> Ruled:
    """A mutant must fall in the cheaper judgement, a variant must pass the thorough one."""
    began = time.monotonic()
    cache = zygote.cache
    built = build(case.operator, case.source, DEVICE, zygote=zygote, cache=cache)
    job = MeasureJob(
        operator=case.operator,
        device=DEVICE,
        contract=case.contract,
        source=case.source,
        pairs=0,
        thorough=not case.mutant,
        deadline_s=DEADLINE_S,
        seed=seed,
    )
    run = measure(job, zygote=zygote, cache=cache) if built.ok else None
    judgement = judge(case.contract, built, run)
    return Ruled(
        case=case.name,
        operator=case.operator.name,
        kind=case.kind,
        verdict=judgement.verdict.value,
        reason=judgement.reason,
        draw=run.draws[-1].distribution if run is not None and run.draws else "",
        seconds=time.monotonic() - began,
    )
