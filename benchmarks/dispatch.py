"""What a job on an SSH machine costs beside itself: `python benchmarks/dispatch.py` (as root).

A host of its own in a network namespace, real sshd. Prints two lines of JSON: the overhead of a
warm job (the median of N runs of `true`), and the idle share of one device while 200 jobs queue for
its lease (1 - sum of job times / span of all).
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from data.records import Device
from targets.machines.remote import RemoteMachine
from targets.machines.ssh import clean, ssh_machine
from tests.targets.machines.hosts import Host, missing

WARM = 100
JOBS = 200
JOB_S = 0.2
DEVICE = Device(name="bench", target="bench", vendor="any", arch="any")


async def overhead(machine: RemoteMachine) -> dict[str, object]:
    """Milliseconds of a warm job beyond the command's own time."""
    spent = []
    for _ in range(WARM):
        started = time.perf_counter()
        done = await machine.run(("true",), 30)
        spent.append((time.perf_counter() - started - done.seconds) * 1e3)
    spent.sort()
    return {"jobs": WARM, "median_ms": statistics.median(spent), "p95_ms": spent[WARM * 95 // 100]}


async def idle(machine: RemoteMachine) -> dict[str, object]:
    """The share of the span in which the leased device did nothing."""
    times: list[float] = []

    async def one() -> None:
        async with machine.lease(DEVICE):
            done = await machine.run(("sleep", str(JOB_S)), 60)
            times.append(done.seconds)

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(JOBS)))
    span = time.perf_counter() - started
    return {"jobs": JOBS, "job_s": sum(times) / JOBS, "idle_share": 1 - sum(times) / span}


async def main(host: Host) -> None:
    machine = ssh_machine(host.destination(python=sys.executable), scope="benchmark")
    await machine.run(("true",), 60)
    print(json.dumps({"what": "overhead", **await overhead(machine)}), flush=True)
    print(json.dumps({"what": "idle", **await idle(machine)}), flush=True)
    await asyncio.to_thread(machine.close)
    clean(host.destination(python=sys.executable))


if __name__ == "__main__":
    if why := missing():
        sys.exit(why)
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        host = Host(Path(folder, "host"), 9, key)
        try:
            host.up()
            host.trust()
            asyncio.run(main(host))
        finally:
            host.down()
