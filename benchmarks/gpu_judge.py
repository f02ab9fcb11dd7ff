"""The judge on a CUDA device: cases, A/A control, cost of a candidate, the corpus on the CPU.

`python benchmarks/gpu_judge.py PART... [--times N] [--corpus DIR]` needs Python, torch and a
device; each line is one result. Parts: cases, aa, cost, corpus.
"""

import argparse
import asyncio
import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from data.codec import decode, encode
from data.errors import MachineError
from data.operator import find
from data.records import (
    BuildResult,
    Contract,
    Device,
    LibraryPolicy,
    MeasureJob,
    Operator,
    RunResult,
)
from data.verdict import Judgement, judge
from targets.machines.judge_server import JudgeServer
from tests.targets.nvidia_cases import CASES, Case

GPU = Device(name="h200", target="nvidia", vendor="nvidia", arch="sm_90")
CPU = Device(name="cpu", target="cpu", vendor="cpu", arch="x86_64")
PAIRS, CONFIRM = 3, 5
ALLOWED = Contract(library=LibraryPolicy.ALLOWED)
OPTIONS = {"default": Contract(), "allowed": ALLOWED}
CLASSES = {
    "stale-output": "WRONG CHEATED",
    "incorrect": "WRONG CHEATED",
    "low-precision": "WRONG CHEATED",
    "input-mutation": "WRONG CHEATED",
    "checker-tamper": "WRONG CHEATED",
    "introspection": "WRONG CHEATED CRASHED",
    "deferred": "WRONG WRONG_SHAPE CHEATED",
    "forged-result": "CRASHED CHEATED WRONG",
    "timer-tamper": "CHEATED CRASHED",
    "no-authored-kernel": "NOT_AUTHORED",
    "timeout": "TIMED_OUT",
    "crash": "CRASHED",
    "memory": "OUT_OF_MEMORY CRASHED",
}


class Bench:
    """One judge server and what was asked of it."""

    def __init__(self, server: JudgeServer) -> None:
        self.server = server

    async def build(self, operator: Operator, source: str, device: Device) -> BuildResult:
        args = {"operator": operator, "candidate_source": source, "device": device}
        args["language"] = "cpp"  # type: ignore[assignment]  # what a server without devices asks
        built: BuildResult = decode(BuildResult, await self.server.ask("build", args, 180.0))
        return built

    async def measure(self, job: MeasureJob) -> RunResult:
        answer = await self.server.ask("measure", encode(job), job.deadline_s + 60.0)
        run: RunResult = decode(RunResult, answer)
        return run

    async def judged(self, job: MeasureJob) -> tuple[Judgement, RunResult | None, float]:
        """Verdict, evidence and seconds."""
        began = time.monotonic()
        build = await self.build(job.operator, job.source, job.device)
        run = await self.measure(job) if build.runs else None
        return judge(job.contract, build, run), run, time.monotonic() - began


def said(judgement: Judgement) -> str:
    if judgement.speedup is None:
        return f"{judgement.verdict} ({judgement.reason[:150]})"
    low, high = judgement.low, judgement.high
    return (
        f"{judgement.verdict} {judgement.speedup:.3f} [{low:.3f}, {high:.3f}] {judgement.baseline}"
    )


async def cases(bench: Bench, asked: argparse.Namespace) -> None:
    """Each case, and after each that harms an honest one."""
    wrong = 0
    chosen = [c for c in CASES if re.search(asked.only, c.name)]
    for case in chosen:
        judgement, run, seconds = await bench.judged(_job(case))
        right = _right(case, judgement)
        wrong += not right
        print(f"{'ok ' if right else 'BAD'} {case.name:40} {seconds:5.1f} s  {said(judgement)}")
        if run is not None and (run.review or not right):
            print(f"      {run.review} {run.detail[:300]}")
        if run is not None and case is chosen[0]:
            print("     ", json.dumps(run.environment), run.isolation)
    print(f"cases {len(chosen)} wrong {wrong}")


def _job(case: Case) -> MeasureJob:
    (operator,) = find([case.operator])
    return MeasureJob(
        operator=operator,
        device=GPU,
        contract=Contract(),
        source=case.source,
        pairs=PAIRS,
        deadline_s=case.deadline_s,
    )


def _right(case: Case, judgement: Judgement) -> bool:
    limit = case.at_most is None or (judgement.speedup or 0.0) <= case.at_most
    return judgement.verdict in case.verdicts and limit


async def aa(bench: Bench, asked: argparse.Namespace) -> None:
    """A baseline against itself."""
    for name in ("row_sum", "matmul", "relu"):
        (operator,) = find([name])
        job = MeasureJob(
            operator=operator,
            device=GPU,
            contract=ALLOWED,
            source=f"{operator.source}\n\nModelNew = Model\n",
            pairs=CONFIRM,
        )
        ratios, held, faster, widths = [], 0, 0, []
        for _ in range(asked.times):
            judgement, run, seconds = await bench.judged(job)
            if run is None or not run.timings:
                print("no timing", said(judgement), run and run.detail)
                continue
            (t,) = run.timings
            ratios.append(t.ratio)
            held += t.low <= 1 <= t.high
            faster += judgement.verdict == "FASTER"
            widths.append((t.high - t.low) / 2)
            print(
                f"{name:8} {t.baseline} {t.ratio:.4f} [{t.low:.4f}, {t.high:.4f}] "
                f"{t.candidate_us:.2f} us, baseline {t.baseline_us:.2f}, null {t.null_us:.2f}, "
                f"floor {t.floor_us} {seconds:.1f} s"
            )
        if ratios:
            print(
                f"aa {name} runs {len(ratios)} held {held} FASTER {faster} "
                f"median {statistics.median(ratios):.4f} half width {statistics.median(widths):.4f}"
            )


async def cost(bench: Bench, asked: argparse.Namespace) -> None:
    """Seconds of a warm candidate that falls at once and of one timed to the end."""
    honest = {c.name: c for c in CASES if c.honest}
    chosen = (
        "elementwise by the launcher",
        "elementwise in CUDA C",
        "row reduction in CUDA C",
        "softmax in Triton",
    )
    for name in chosen:
        case = honest[name]
        for label, extra, pairs in (("falls", FALLS, PAIRS), ("timed", "", PAIRS)):
            taken = []
            for number in range(asked.times):
                job = _job(case)
                source = f"{case.source}\n# {number}\n{extra}"
                fresh = MeasureJob(
                    operator=job.operator,
                    device=GPU,
                    contract=job.contract,
                    source=source,
                    pairs=pairs,
                )
                judgement, _, seconds = await bench.judged(fresh)
                taken.append(seconds)
            times = " ".join(f"{s:.2f}" for s in taken)
            middle = statistics.median(taken)
            print(f"cost {name} {label} median {middle:.2f} s ({times}) {said(judgement)}")


FALLS = """
class Late(ModelNew):
    def forward(self, x):
        y = super().forward(x)
        y.view(-1)[-1] += 1.0
        return y
ModelNew = Late
"""


async def corpus(bench: Bench, asked: argparse.Namespace) -> None:
    """Files with headers (see their README), on the CPU of this machine, under both policies."""
    for policy, contract in OPTIONS.items():
        wrong = total = 0
        for path in sorted(asked.corpus.glob("s*.py")):
            header, source = _parts(path.read_text())
            if policy == "allowed" and _policy_only(header):
                continue
            problem = asked.corpus / header["problem"]
            operator = Operator(name="op", source=_parts(problem.read_text())[1])
            job = MeasureJob(
                operator=operator, device=CPU, contract=contract, source=source, pairs=asked.pairs
            )
            try:
                judgement, run, seconds = await bench.judged(job)
            except MachineError as error:
                print(f"BAD {path.name} {error}")
                wrong += 1
                continue
            right = _as_headed(header, judgement, policy)
            total, wrong = total + 1, wrong + (not right)
            rung = run.isolation if run else "-"
            mark = "ok " if right else "BAD"
            print(f"{mark} {path.name:36} {rung} {seconds:5.1f} s {said(judgement)}")
        print(f"corpus {policy} cases {total} wrong {wrong}")


def _parts(text: str) -> tuple[dict[str, str], str]:
    """Header and source."""
    header: dict[str, str] = {}
    lines = text.splitlines(keepends=True)
    while lines and (found := re.match(r"# ([\w-]+): (.*)", lines[0])):
        header.setdefault(found[1], found[2])
        lines.pop(0)
    return header, "".join(lines)


def _policy_only(header: dict[str, str]) -> bool:
    return header.get("verdict") == "reject/no-authored-kernel"


def _as_headed(header: dict[str, str], judgement: Judgement, policy: str) -> bool:
    """Rules that need more than a verdict are left to whoever reads the line."""
    accepted = judgement.verdict in ("CORRECT", "FASTER")
    kind, _, name = header["verdict"].partition("/")
    if kind == "accept":
        return accepted
    named = {*CLASSES[name].split(), *header.get("as", "").split()}
    if header.get("authored-kernel") == "no" and policy == "default":
        named.add("NOT_AUTHORED")
    return judgement.verdict in named or (accepted and "accept-if" in header)


def _log(path: Path) -> str:
    return path.read_text()[-3000:]


PARTS: dict[str, Callable[[Bench, argparse.Namespace], Any]] = {
    "cases": cases,
    "aa": aa,
    "cost": cost,
    "corpus": corpus,
}


async def main(asked: argparse.Namespace) -> None:
    """The parts in order, with one warm server."""
    with tempfile.TemporaryDirectory() as cache:
        began = time.monotonic()
        server = JudgeServer(Path(cache))
        try:
            device = CPU if asked.parts == ["corpus"] else GPU
            probe = await server.ask("probe", {"device": device}, 180.0)
            print(f"ready after {time.monotonic() - began:.1f} s", json.dumps(probe))
            for part in asked.parts:
                began = time.monotonic()
                await PARTS[part](Bench(server), asked)
                print(f"part {part}: {time.monotonic() - began:.1f} s", flush=True)
        finally:
            server.close()
            print(_log(Path(cache, "judge.log")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=list(PARTS))
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--only", default="", help="pattern of the cases' names")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of the corpus; 0: untimed")
    asyncio.run(main(parser.parse_args()))
