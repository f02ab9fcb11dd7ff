"""Pairs, rows and stages for tests of the loop: fakes at the seam, nothing patched."""

from dataclasses import dataclass, field

from agents.loop import Stages
from data.records import (
    Admission,
    Advice,
    Bottleneck,
    Brief,
    BuildResult,
    Candidate,
    Contract,
    Counsel,
    Device,
    Evidence,
    Iteration,
    MeasureJob,
    Metric,
    Operator,
    Pair,
    Profile,
    Proposal,
    Request,
    RunResult,
    RunStatus,
    Settings,
    Timing,
)
from data.verdict import Outcome

OPERATOR = Operator(name="softmax", source="class Model: ...", family="softmax")
DEVICE = Device(name="cpu", target="cpu", vendor="cpu", arch="x86-64")
BRIEF = Brief(language="cpp", guide="guide", example_operator="Model", example_kernel="ModelNew")
ADVICE = Advice(
    bottleneck=Bottleneck.MEMORY,
    evidence=(Evidence(metric="bandwidth_share", value=0.3),),
    change="stream the output",
    technique="streaming_store",
)


def pair(**settings: object) -> Pair:
    return Pair(
        run_id="r1",
        epoch="default",
        operator=OPERATOR,
        device=DEVICE,
        contract=Contract(),
        settings=Settings(**settings),  # type: ignore[arg-type]  # names checked by the record
        brief=BRIEF,
    )


def timing(ratio: float, *, floor_us: float | None = None, spread: float = 1.01) -> Timing:
    return Timing(
        shape="full",
        baseline="eager",
        ratio=ratio,
        low=ratio / spread,
        high=ratio * spread,
        pair_ratios=(ratio,) * 3,
        candidate_us=1000 / ratio,
        baseline_us=1000.0,
        floor_us=floor_us,
    )


@dataclass
class Scripted:
    """Stages whose generator's sources say what happens to them: `wrong`, `2.0x`, `broken`, ...

    `confirms` says how a winner fares in the confirming run, by source; the default is as before.
    """

    replies: list[str]
    confirms: dict[str, str] = field(default_factory=dict)
    admission: Admission = field(default_factory=lambda: Admission(outcome=None, reason=""))
    floor_us: float | None = None
    advice: Advice | None = ADVICE
    requests: list[Request] = field(default_factory=list)
    advised: list[Request] = field(default_factory=list)
    jobs: list[MeasureJob] = field(default_factory=list)
    rows: list[Iteration] = field(default_factory=list)

    def stages(self) -> Stages:
        return Stages(
            admit=self.admit,
            propose=self.propose,
            build=self.build,
            measure=self.measure,
            profile=self.profile,
            advise=self.advise,
            record=self.record,
            now=lambda: "2026-11-30T00:00:00Z",
        )

    async def admit(self, _: Pair) -> Admission:
        return self.admission

    async def propose(self, request: Request) -> Proposal:
        self.requests.append(request)
        if not self.replies:
            return Proposal(candidate=None, outcome=Outcome.NOT_COVERED, reason="no template")
        source = self.replies.pop(0)
        return Proposal(
            candidate=Candidate(
                source=source, language="cpp", agent_kind="scripted", agent_name="script"
            )
        )

    async def build(self, job: MeasureJob) -> BuildResult:
        broken = job.source.startswith("broken")
        return BuildResult(
            ok=not broken, route="launcher", detail="does not compile" if broken else ""
        )

    async def measure(self, job: MeasureJob) -> RunResult:
        self.jobs.append(job)
        source = self.confirms.get(job.source, job.source) if job.thorough else job.source
        if source.startswith("wrong"):
            return RunResult(status=RunStatus.WRONG, detail="17 elements differ")
        ratio = float(source.split("x")[0])
        return RunResult(
            status=RunStatus.RAN, authored=True, timings=(timing(ratio, floor_us=self.floor_us),)
        )

    def profile(self, _: Admission, __: Iteration) -> Profile:
        return Profile(
            metrics=(Metric(name="bandwidth_share", value=0.3, unit="", source="roofline"),)
        )

    async def advise(self, request: Request) -> Counsel:
        self.advised.append(request)
        return Counsel(advice=self.advice)

    async def record(self, iteration: Iteration) -> None:
        self.rows.append(iteration)
