"""A/A control: an operator's own reference as the candidate, against eager.

`python benchmarks/aa.py [OPERATOR...] [--times N]` prints a line a measurement. 1 should lie inside
19 of 20 intervals, and none may claim a gain.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from agents.loop import CONFIRM_PAIRS
from data.operator import find
from data.records import Contract, LibraryPolicy, MeasureJob
from targets.machines.inventory import device
from targets.machines.local import LocalMachine


async def main(names: list[str], times: int) -> None:
    """Measures each operator against itself."""
    cpu = device("cpu", None)
    with tempfile.TemporaryDirectory() as cache:
        machine = LocalMachine(Path(cache))
        try:
            for operator in find(names):
                job = MeasureJob(
                    operator=operator,
                    device=cpu,
                    contract=Contract(library=LibraryPolicy.ALLOWED),
                    source=f"{operator.source}\n\nModelNew = Model\n",
                    pairs=CONFIRM_PAIRS,
                )
                for _ in range(times):
                    async with machine.lease(cpu):
                        run = await machine.measure(job)
                    for t in run.timings:
                        said = "inside" if t.low <= 1 <= t.high else "OUTSIDE"
                        print(
                            f"{operator.name:24} {t.baseline:14} {t.ratio:.3f} "
                            f"[{t.low:.3f}, {t.high:.3f}] {said}",
                            flush=True,
                        )
        finally:
            machine.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", default=["relu", "softmax", "matmul"])
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    asyncio.run(main(asked.operators, asked.times))
