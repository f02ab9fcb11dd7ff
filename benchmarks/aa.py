"""A/A control: a baseline against itself, on this machine's processor or CUDA device.

`python -m benchmarks.aa [OPERATOR...] [--device cpu|cuda] [--times N] [--load N]` prints a line an
operator: of N runs, how many intervals hold 1 (at least 85 %), how many claim FASTER (none), the
median of the ratios (within 1 %) and the median half width. Exits with 1 when a bar fails. `--load`
keeps that many processes busy meanwhile. A device's line also says what each form of the baseline
took, and what the race measured of the chosen one.
"""

import argparse
import math
import multiprocessing
import os
import platform
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agents.loop import CONFIRM_PAIRS
from data.operator import find
from data.records import Contract, Device, LibraryPolicy, MeasureJob, Operator, Timing
from data.verdict import FASTER_ABOVE
from targets.remote.accelerator import kind_of_device
from targets.remote.allowance import Allowance
from targets.remote.baseline import Choice, choose
from targets.remote.bench import EAGER, Bench
from targets.remote.operator import LoadedOperator
from targets.remote.timing import Race
from targets.remote.zygote import Zygote

OPERATORS = ("matmul", "relu", "row_sum")
HELD, OFF = 0.85, 0.01
JOB_S = 120.0
DEVICES = {
    "cpu": Device(name="cpu", target="cpu", vendor="cpu", arch=platform.machine()),
    "cuda": Device(name="cuda", target="nvidia", vendor="nvidia", arch=""),
}


def bench_of(operator: Operator, device: Device, zygote: Zygote, cache: Path) -> Bench:
    """Its own reference as the candidate, judged like any other."""
    loaded, kind = LoadedOperator(operator), kind_of_device(device)
    kind.begin(reduced=False)
    loaded.place = kind.place
    job = MeasureJob(
        operator=operator,
        device=device,
        contract=Contract(library=LibraryPolicy.ALLOWED),
        source=f"{operator.source}\n\nModelNew = Model\n",
        pairs=CONFIRM_PAIRS,
        thorough=True,
    )
    return Bench(
        job=job,
        loaded=loaded,
        kind=kind,
        zygote=zygote,
        cache=cache,
        deadline=time.monotonic() + JOB_S,
        seed=secrets.randbelow(1 << 31),
        candidates=Allowance(JOB_S),
        baselines=Allowance(JOB_S),
    )


def timed(operator: Operator, device: Device, zygote: Zygote, cache: Path) -> Timing:
    """One confirmation of eager against eager."""
    bench = bench_of(operator, device, zygote, cache)
    shape = bench.loaded.official
    try:
        choice = Choice(name=EAGER, times_us=choose(bench, shape).times_us)
        timing = Race(bench, shape, choice).run(None)
    finally:
        bench.close()
    assert timing is not None
    return replace(timing, others_us=choice.times_us)


def said(name: str, timings: list[Timing]) -> bool:
    """Prints the operator's line; whether it keeps all bars."""
    held = sum(t.low <= 1 <= t.high for t in timings)
    faster = sum(t.low > FASTER_ABOVE for t in timings)
    middle = statistics.median(t.ratio for t in timings)
    half = statistics.median(math.sqrt(t.high / t.low) - 1 for t in timings)
    good = held >= HELD * len(timings) and not faster and abs(middle - 1) <= OFF
    print(
        f"{name:16} holds 1 in {held} of {len(timings)}  FASTER {faster}  median {middle:.4f}  "
        f"half width {100 * half:.1f} %  {'ok' if good else 'FAILED'}",
        flush=True,
    )
    if timings[-1].others_us.keys() > {EAGER}:
        forms = ", ".join(f"{n} {us:.1f} us" for n, us in timings[-1].others_us.items())
        raced = statistics.median(t.baseline_us for t in timings)
        print(f"{'':16} chosen by {forms}; eager raced at {raced:.1f} us", flush=True)
    return good


@contextmanager
def burning(count: int) -> Iterator[None]:
    """So many busy processes of neighbours."""
    neighbours = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(count)]
    for n in neighbours:
        n.start()
    try:
        yield
    finally:
        for n in neighbours:
            n.terminate()
            n.join()


def _burn() -> None:
    while True:
        pass


def main(names: list[str], device: Device, times: int, load: int) -> int:
    """0 when every operator keeps the bars."""
    good = True
    with tempfile.TemporaryDirectory() as folder, burning(load):
        zygote = Zygote(Path(folder))
        try:
            for operator in find(names):
                began, before = time.monotonic(), os.getloadavg()[0]
                runs = [timed(operator, device, zygote, Path(folder)) for _ in range(times)]
                good &= said(operator.name, runs)
                print(
                    f"{'':16} {(time.monotonic() - began) / times:.1f} s a run; "
                    f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after",
                    flush=True,
                )
        finally:
            zygote.close()
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", default=[*OPERATORS])
    parser.add_argument("--device", choices=sorted(DEVICES), default="cpu")
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--load", type=int, default=0)
    asked = parser.parse_args()
    sys.exit(main(asked.operators, DEVICES[asked.device], asked.times, asked.load))
