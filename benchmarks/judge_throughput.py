"""Candidates a minute: this judge against KernelBench's own evaluation of the same kernels.

`python -m benchmarks.judge_throughput [--device cpu|cuda] [--checkout DIR] [--rounds N]
[--cases N]` judges the kernels of `throughput_cases.py`, or some of them, half of which fall before
they are timed, in launcher form by a
resident judge (all draws, timed by as many pairs as a step of a campaign; a right one is then
confirmed as well, which is told apart) and in `load_inline` form by KernelBench's
steps, a process a candidate as in its scripts (`kernelbench_eval.py`). Starting the judge and
admitting the operators is counted apart: once a batch. Exits with 1 below the bar.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from agents.loop import CONFIRM_PAIRS, EXPLORE_PAIRS
from benchmarks.kernelbench_eval import TRIALS
from benchmarks.throughput_cases import Pair, pairs
from data.records import Contract, Device, MeasureJob, Operator, RunResult
from data.verdict import Verdict, judge
from targets.machines.local import LocalMachine

BAR = {"cpu": 8.0, "cuda": 25.0}
EVALUATION = Path(__file__).with_name("kernelbench_eval.py")
LIMIT_S = 600.0


async def ours(cases: list[Pair], device: Device, rounds: int) -> tuple[float, list[float], float]:
    """Seconds to be ready, seconds a candidate, seconds of a confirmation; prints a line each."""
    with tempfile.TemporaryDirectory() as folder:
        machine = LocalMachine(Path(folder))
        try:
            began = time.monotonic()
            for case in cases:
                await machine.admit(_operator(case), Contract(), device)
            for case in cases:
                if case.draws_wanted:  # compiled baselines, once an operator
                    await _judged(machine, case, device)
            ready = time.monotonic() - began
            taken = [await _told(machine, c, device) for _ in range(rounds) for c in cases]
            confirmed = await _told(machine, cases[0], device, CONFIRM_PAIRS)
        finally:
            machine.close()
    return ready, taken, confirmed


async def _told(
    machine: LocalMachine, case: Pair, device: Device, pairs: int = EXPLORE_PAIRS
) -> float:
    began = time.monotonic()
    verdict, run = await _judged(machine, case, device, pairs)
    took = time.monotonic() - began
    draws = len(run.draws) if run else 0
    right = verdict in (Verdict.CORRECT, Verdict.FASTER)
    said = "" if right is case.draws_wanted else "  WRONGLY"
    print(f"  {case.name:8} {took:6.2f} s  {verdict} after {draws} draws{said}", flush=True)
    return took


async def _judged(
    machine: LocalMachine, case: Pair, device: Device, pairs: int = EXPLORE_PAIRS
) -> tuple[Verdict, RunResult | None]:
    operator, contract = _operator(case), Contract()
    async with machine.lease(device):
        build = await machine.build(operator, case.launcher, device)
        run = await machine.measure(_job(case, device, pairs)) if build.runs else None
    return judge(contract, build, run).verdict, run


def _job(case: Pair, device: Device, pairs: int) -> MeasureJob:
    return MeasureJob(
        operator=_operator(case),
        device=device,
        contract=Contract(),
        source=case.launcher,
        pairs=pairs,
        thorough=True,
    )


def _operator(case: Pair) -> Operator:
    return Operator(name=case.name, source=case.operator)


def theirs(cases: list[Pair], checkout: Path | None) -> list[float]:
    """Seconds a candidate by KernelBench's steps, each build from nothing; prints a line each."""
    taken = []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder, "reference.py"), Path(folder, "candidate.py")
            for file, text in zip(files, (case.operator, case.inline), strict=True):
                file.write_text(text)
            given = ["--checkout", str(checkout)] if checkout else []
            began = time.monotonic()
            done = subprocess.run(
                [sys.executable, str(EVALUATION), *map(str, files), *given],
                env={**os.environ, "TORCH_EXTENSIONS_DIR": folder},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        taken.append(time.monotonic() - began)
        print(f"  {case.name:8} {taken[-1]:6.2f} s  {_found(done)}", flush=True)
    return taken


def _found(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return f"ended with {done.returncode}"
    return str(json.loads(lines[-1])["found"])


def some(cases: list[Pair], count: int) -> list[Pair]:
    """As many right as faulty ones."""
    halves = [c for c in cases if c.draws_wanted], [c for c in cases if not c.draws_wanted]
    return [c for pair in zip(*halves, strict=True) for c in pair][:count]


def _processor() -> Device:
    from targets.machines.inventory import device  # noqa: PLC0415 (pydantic: not on a GPU's host)

    return device("cpu", None)


def _card() -> Device:
    major, minor = torch.cuda.get_device_capability()
    return Device(name="cuda", target="nvidia", vendor="nvidia", arch=f"sm_{major}{minor}")


def main(cases: list[Pair], kind: str, checkout: Path | None, rounds: int) -> int:
    """0 when the bar is kept."""
    device = _processor() if kind == "cpu" else _card()
    print("this judge, launcher form", flush=True)
    ready, mine, confirmed = asyncio.run(ours(cases, device, rounds))
    print(f"KernelBench's steps, load_inline form, {TRIALS} draws", flush=True)
    other = theirs(cases, checkout)
    first, second = statistics.fmean(mine), statistics.fmean(other)
    halves: dict[bool, list[float]] = {True: [], False: []}
    for case, seconds in zip(cases * rounds, mine, strict=True):
        halves[case.draws_wanted].append(seconds)
    print(
        f"{60 / first:.1f} candidates a minute against {60 / second:.1f}: "
        f"{second / first:.1f} times cheaper; {max(halves[False]):.1f} s at most before timing, "
        f"{max(halves[True]):.1f} s timed to the end, {confirmed:.1f} s confirmed; "
        f"ready after {ready:.1f} s, once a batch"
    )
    return 0 if second / first >= BAR[kind] else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=sorted(BAR), default="cpu")
    parser.add_argument("--checkout", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cases", type=int, default=8)
    asked = parser.parse_args()
    chosen = some(pairs(asked.device), asked.cases)
    sys.exit(main(chosen, asked.device, asked.checkout, asked.rounds))
