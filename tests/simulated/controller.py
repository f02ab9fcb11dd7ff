"""A controller in a process of its own: runs a simulated campaign and says what it took.

`python -m tests.simulated.controller ENGINE RUNS ENDPOINT PAIRS STEPS PARALLEL`
"""

import asyncio
import json
import os
import resource
import sys
import time
from pathlib import Path

from data.records import Iteration, Pair
from flows.engine import CLIENT
from tasks.campaign import Campaign, PairResult
from tasks.progress import listening
from tasks.running import run_locally
from tests.simulated.campaign import campaign


class Tally:
    """Size of this process and time, each time another tenth of the pairs has ended."""

    def __init__(self, pairs: int) -> None:
        self._pairs, self._done = pairs, 0
        self.at: list[float] = [time.monotonic()]
        self.mb: list[float] = []
        self.faults: list[str] = []

    def started(self, pair: Pair) -> None: ...
    def stepped(self, iteration: Iteration) -> None: ...

    def ended(self, result: PairResult) -> None:
        self._count()

    def failed(self, pair: Pair, error: BaseException) -> None:
        self.faults.append(f"{pair.name}: {type(error).__name__}: {error}"[:300])
        self._count()

    def _count(self) -> None:
        self._done += 1
        if self._done * 10 // self._pairs > len(self.mb):
            self.mb.append(round(resident_mb(), 1))
            self.at.append(time.monotonic())


def resident_mb() -> float:
    """Of this process, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main(engine: str, runs: Path, endpoint: str, sizes: list[int]) -> None:
    """Runs the campaign and prints its figures as the last line."""
    began = time.monotonic()
    pairs, steps, parallel = sizes
    made = campaign(runs, pairs=pairs, steps=steps, api_base=endpoint, parallel=parallel)
    tally = Tally(pairs)
    with listening(tally):
        try:
            ported(engine, made)
        except Exception as error:  # noqa: BLE001  (told, with what the others did)
            tally.faults.append(f"campaign: {type(error).__name__}: {error}"[:300])
    wall_s = time.monotonic() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    tenths = [round(b - a, 1) for a, b in zip(tally.at, tally.at[1:], strict=False)]
    told = {
        "parallel": parallel,
        "wall_s": round(wall_s, 1),
        "controller_mb": round(peak_mb, 1),
        "mb_by_tenth": tally.mb,
        "s_by_tenth": tenths,
        "cpu_s": round(sum(os.times()[:2]), 1),
        "faults": tally.faults,
    }
    print(json.dumps(told))


def ported(engine: str, made: Campaign) -> None:
    """All pairs, in this process alone or as flows."""
    if engine == "local":
        asyncio.run(run_locally(made))
        return
    for name, value in CLIENT.items():
        os.environ.setdefault(name, value)
    from flows.port import port

    asyncio.run(port(made.runs, made.run_id, made.epoch))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], [int(n) for n in sys.argv[4:7]])
