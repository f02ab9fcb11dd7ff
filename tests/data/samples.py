"""Iterations and calls made by hand for the ledger's tests."""

from dataclasses import replace

from data.records import (
    Advice,
    Bottleneck,
    BuildResult,
    Candidate,
    Contract,
    Device,
    Diagnostic,
    Draw,
    Evidence,
    Iteration,
    LlmCall,
    Metric,
    Mode,
    Move,
    Operator,
    Profile,
    RunResult,
    RunStatus,
    Timing,
)
from data.rows import CallKey
from data.verdict import Verdict

CPU = Device(name="cpu", target="cpu", vendor="amd", arch="znver4")
RELU = Operator(name="relu", source="class Model: ...", family="elementwise")


def timing(shape: str = "full", ratio: float = 1.5, **other: object) -> Timing:
    """A timing whose interval is 2 % to each side."""
    plain = Timing(
        shape=shape,
        baseline="eager",
        ratio=ratio,
        low=ratio / 1.02,
        high=ratio * 1.02,
        pair_ratios=(ratio, ratio * 1.01, ratio * 0.99),
        candidate_us=100.0,
        baseline_us=100.0 * ratio,
    )
    return replace(plain, **other)  # type: ignore[arg-type]  # fields by name


def beside_parent(gain: float) -> RunResult:
    """A run timed beside its parent, with an interval of 2 % to each side."""
    paired = timing(parent_ratio=gain, parent_low=gain / 1.02, parent_high=gain * 1.02)
    return RunResult(status=RunStatus.RAN, timings=(paired,))


def plain(step: int = 0, **other: object) -> Iteration:
    """A correct step of relu on the CPU; `other` replaces fields."""
    iteration = Iteration(
        run_id="run",
        epoch="default",
        operator=RELU,
        device=CPU,
        contract=Contract(),
        move=Move(mode=Mode.CREATE, step=step, lineage="a"),
        verdict=Verdict.CORRECT,
        reason="right",
        candidate=Candidate(
            source=f"# {step}", language="cpp", agent_kind="offline", agent_name="map"
        ),
        started_at=f"2026-01-01T00:{step // 60:02d}:{step % 60:02d}+00:00",
        ended_at=f"2026-01-01T01:{step // 60:02d}:{step % 60:02d}+00:00",
    )
    return replace(iteration, **other)  # type: ignore[arg-type]  # fields by name


def confirmed(step: int, ratio: float, **other: object) -> Iteration:
    """A confirming step that is FASTER by `ratio`."""
    shared = {
        "move": Move(mode=Mode.CONFIRM, step=step, lineage="a"),
        "verdict": Verdict.FASTER,
        "run": RunResult(status=RunStatus.RAN, timings=(timing(ratio=ratio),)),
        "baseline": "eager",
        "speedup": ratio,
        "speedup_low": ratio / 1.02,
        "speedup_high": ratio * 1.02,
    }
    return plain(step, **(shared | other))


def emulated(timed: Iteration, name: str = "cpu") -> Iteration:
    """As a row of an older version, which let an emulated device have times."""
    object.__setattr__(timed, "device", replace(CPU, name=name, execution="emulated"))
    return timed


def call(**other: object) -> LlmCall:
    """An answered call; `other` replaces fields."""
    answered = LlmCall(
        role="generator",
        model="m",
        prompt_hash="p0",
        prompt="Write relu.",
        reply="```python\n```",
        reasoning=None,
        finish_reason="stop",
        parse_status="ok",
        prompt_tokens=100,
        cached_tokens=None,
        completion_tokens=50,
        reasoning_tokens=None,
        usage='{"prompt_tokens": 100}',
        price={"input": 1e-6},
        cost_usd=0.25,
        started_at="2026-01-01T00:00:00+00:00",
    )
    return replace(answered, **other)  # type: ignore[arg-type]  # fields by name


def key(step: int = 0, role: str = "generator") -> CallKey:
    """The key of the calls of one step of `plain`."""
    return CallKey(
        run_id="run",
        operator_hash=RELU.hash,
        device="cpu",
        contract=str(Contract()),
        lineage="a",
        step=step,
        role=role,
    )


def rich(step: int = 3) -> Iteration:
    """An iteration with every field filled, awkward text included."""
    return confirmed(
        step,
        2.0,
        candidate=Candidate(
            source='s = "\ud800 \x00 é 漢"\n',
            language="cpp",
            agent_kind="llm",
            agent_name="generator",
            model="m",
            parents=("aa", "bb"),
            reference="cc",
            techniques=("vectorize", "unroll"),
            parameters={"unroll": "4"},
            note="n",
            prompt_hash="p0",
        ),
        build=BuildResult(
            ok=True,
            route="launcher",
            diagnostics=(Diagnostic(file="k.cpp", line=None, severity="note", message="m"),),
            metrics=(Metric(name="loops_vectorised", value=2.0, unit="", source="g++"),),
            seconds=0.5,
        ),
        run=RunResult(
            status=RunStatus.RAN,
            draws=(Draw(shape="full", distribution="normal", error=1e-8, worst=None, ok=True),),
            timings=(
                timing("full", 2.0, others_us={"torch.compile": 300.0}, samples_us=(1.5, 2.5)),
                timing(
                    "small",
                    2.0,
                    parent_ratio=1.25,
                    parent_low=1.2,
                    parent_high=1.3,
                    floor_us=3.0,
                    warm=True,
                ),
            ),
            library_ops=("aten.mm",),
            authored=True,
            isolation="unshare",
            environment={"torch": "2.13"},
            seconds=4.0,
        ),
        profile=Profile(metrics=(Metric(name="time_us", value=1.0, unit="us", source="judge"),)),
        advice=Advice(
            bottleneck=Bottleneck.MEMORY,
            evidence=(Evidence(metric="time_us", value=1.0),),
            change="vectorise",
            technique="vectorize",
            expected_gain=1.5,
        ),
        calls=(call(), call(role="analyst")),
        detected=("vectorize",),
        techniques_added=("vectorize",),
        gain_over_parent=1.25,
        environment={"cpu": "x"},
        needs_review=True,
    )
