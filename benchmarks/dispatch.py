"""What a job on an SSH machine costs beside itself: `python benchmarks/dispatch.py` (as root).

A host of its own in a network namespace, real sshd. Prints three lines of JSON: the overhead of a
warm job (the median of N runs of `true`), and what one device stood idle while 200 jobs queued for
it, as a ratio to the sum of their times: when each job waits on the host for its turn, and when
each is sent only once its lease is there. `--jobs` and `--seconds` change their number and length.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from data.records import Device
from targets.machines.remote import RemoteMachine
from targets.machines.ssh import clean, ssh_machine
from tests.targets.machines.hosts import Host, missing

WARM = 100
DEVICE = Device(name="bench", target="bench", vendor="any", arch="any")


async def overhead(machine: RemoteMachine) -> dict[str, float]:
    """Milliseconds of a warm job beyond the command's own time."""
    spent = []
    for _ in range(WARM):
        started = time.perf_counter()
        done = await machine.run(("true",), 30)
        spent.append((time.perf_counter() - started - done.seconds) * 1e3)
    spent.sort()
    return {"jobs": WARM, "median_ms": statistics.median(spent), "p95_ms": spent[WARM * 95 // 100]}


Way = Callable[[Device], AbstractAsyncContextManager[None]]


async def idle(machine: RemoteMachine, way: Way, asked: argparse.Namespace) -> dict[str, float]:
    """The time in which the device did nothing, by the sum of the jobs' times."""
    times: list[float] = []

    async def one() -> None:
        async with way(DEVICE):
            done = await machine.run(("sleep", str(asked.seconds)), 60)
            times.append(done.seconds)

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(asked.jobs)))
    span, busy = time.perf_counter() - started, sum(times)
    return {"jobs": asked.jobs, "job_s": busy / asked.jobs, "idle": (span - busy) / busy}


async def main(host: Host, asked: argparse.Namespace) -> None:
    machine = ssh_machine(host.destination(python=sys.executable), scope="benchmark")
    await machine.run(("true",), 60)
    print(json.dumps({"what": "overhead", **await overhead(machine)}), flush=True)
    for way in (machine.turn, machine.lease):
        told = await idle(machine, way, asked)
        print(json.dumps({"what": f"idle by {way.__name__}", **told}), flush=True)
    await asyncio.to_thread(machine.close)
    clean(host.destination(python=sys.executable))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.2)
    asked = parser.parse_args()
    if why := missing():
        sys.exit(why)
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        host = Host(Path(folder, "host"), 9, key)
        try:
            host.up()
            host.trust()
            asyncio.run(main(host, asked))
        finally:
            host.down()
