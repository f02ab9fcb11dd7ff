"""A ledger with something for every part of the page, made by hand."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from data.records import (
    Advice,
    Bottleneck,
    Candidate,
    Device,
    Evidence,
    Iteration,
    Metric,
    Mode,
    Move,
    Operator,
    Profile,
    RunResult,
    RunStatus,
)
from data.store import Ledger
from data.verdict import Outcome, Verdict
from tests.data.samples import CPU, confirmed, plain, timing

OPENCL = replace(CPU, name="xeon-opencl", vendor="intel")
MAC = Device(name="m4", target="apple", vendor="apple", arch="m4", execution="emulated")
OPERATORS = 10
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e"
KERNEL = """import torch.nn as nn
from kforge_launch import kernels

K = kernels(r'''
extern "C" void run(const float* x, float* y, long n) {
    // STEP
    for (long i = 0; i < n; ++i) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
''', language="cpp")
"""


def operator(n: int) -> Operator:
    return Operator(name=f"operator_{n}", source=f"o{n}", family="norm" if n % 2 else "map")


def made(step: int, device: Device) -> Candidate:
    parents = (made(step - 1, device).id,) if step else ()
    return Candidate(
        source=KERNEL.replace("STEP", f"step {step} on {device.name}"),
        language="cpp",
        agent_kind="offline",
        agent_name="map",
        parents=parents,
    )


def profile(n: int) -> Profile:
    values = {
        "arithmetic_intensity": 0.2 * (n + 1),
        "achieved_gflop_s": 5.0 * (n + 1),
        "achieved_gb_s": 25.0,
        "peak_gb_s": 40.0,
        "peak_gflop_s": 900.0,
        "time_over_floor": 1.6,
    }
    return Profile(
        metrics=tuple(
            Metric(name=name, value=value, unit="", source="roofline")
            for name, value in values.items()
        )
    )


def pair(n: int, device: Device, gain: float) -> Iterator[Iteration]:
    """A first kernel, one that gains by a technique, one that loses, the confirming run."""
    shared = {"operator": operator(n), "device": device}
    first = timing(ratio=1.1 + n / 20)
    yield plain(
        0,
        candidate=made(0, device),
        run=RunResult(status=RunStatus.RAN, timings=(first,)),
        speedup=first.ratio,
        speedup_low=first.low,
        speedup_high=first.high,
        baseline="eager",
        **shared,
    )
    ratio = first.ratio * gain
    timed = timing(ratio=ratio, parent_ratio=gain, parent_low=gain / 1.02, parent_high=gain * 1.02)
    advice = Advice(
        bottleneck=Bottleneck.MEMORY,
        evidence=(Evidence(metric="bandwidth_share", value=0.41),),
        change="write results past the caches",
        technique="streaming_store",
        expected_gain=1.2,
    )
    yield plain(
        1,
        move=Move(mode=Mode.OPTIMISE, step=1, lineage="a", parent=made(0, device).id),
        candidate=made(1, device),
        run=RunResult(status=RunStatus.RAN, timings=(timed,)),
        techniques_added=("streaming_store",),
        gain_over_parent=gain,
        speedup=ratio,
        speedup_low=timed.low,
        speedup_high=timed.high,
        baseline="eager",
        advice=advice,
        profile=profile(n),
        **shared,
    )
    worse = timing(ratio=ratio * 0.9, parent_ratio=0.9, parent_low=0.88, parent_high=0.92)
    yield plain(
        2,
        move=Move(mode=Mode.OPTIMISE, step=2, lineage="a", parent=made(1, device).id),
        candidate=made(2, device),
        run=RunResult(status=RunStatus.RAN, timings=(worse,)),
        techniques_added=("prefetch",),
        gain_over_parent=0.9,
        speedup=ratio * 0.9,
        baseline="eager",
        **shared,
    )
    yield confirmed(3, ratio, candidate=made(1, device), profile=profile(n), **shared)


def iterations() -> Iterator[Iteration]:
    """Ten operators on two devices, some on an emulated one, and each way not to succeed."""
    for n in range(OPERATORS):
        yield from pair(n, CPU, 1.3 + n / 50)
        yield from pair(n, OPENCL, 1.2 + n / 40 if n else 0.8)
    for n in range(4):
        yield plain(0, operator=operator(n), device=MAC)
    ends = (Verdict.WRONG, Verdict.NOT_AUTHORED, Verdict.UNVERIFIED, Outcome.NOT_COVERED)
    for n, verdict in enumerate(ends):
        covered = verdict is not Outcome.NOT_COVERED
        yield plain(
            0,
            operator=operator(50 + n),
            verdict=verdict,
            candidate=made(0, CPU) if covered else None,
            reason=f"because of {HOSTILE}",
        )
    yield confirmed(
        0,
        1.5,
        operator=Operator(name=HOSTILE, source="hostile"),
        candidate=replace(made(0, CPU), source=f"# {HOSTILE}", model=HOSTILE),
    )


def fill(root: Path) -> None:
    """Puts all of them on record."""
    for iteration in iterations():
        Ledger(root).append(iteration)
