"""A controller that asks one judge job of a host, for tests that kill it: prints the answer."""

import asyncio
import json
import sys
from pathlib import Path

from data.records import Device
from targets.machines.ssh import Destination, ssh_machine

DEVICE = Device(name="cpu", target="cpu", vendor="any", arch="any")
SOURCE = """
import time
import kforge_launch
time.sleep({seconds})
kforge_launch.kernels('extern "C" void f(float* y) {{ y[0] = 1; }}')
"""


async def main(name: str, config: str, root: str, seconds: str) -> None:
    destination = Destination(
        name="lab", host=name, python=sys.executable, root=root, config=Path(config)
    )
    machine = ssh_machine(destination, scope="the ledger")
    args = {
        "operator": {"name": "any", "source": ""},
        "candidate_source": SOURCE.format(seconds=seconds),
        "device": DEVICE,
    }
    print(json.dumps(await machine.judge("build", args, 120.0)), flush=True)
    machine.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
