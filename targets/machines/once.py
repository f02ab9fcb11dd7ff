"""One job for a batch system's node: `python -m targets.machines.once REQUEST ANSWER CACHE`.

REQUEST is a file with `{"command": [...], "deadline_s": 60}` or `{"ask": "measure", "with": {...},
"deadline_s": 60}`; ANSWER becomes `{"value": ...}` or `{"error": "one line"}`. What is timed holds
the node's own lease. SIGTERM ends the job with all its processes.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

from data.codec import decode
from data.errors import MachineError
from data.records import Device
from targets.machines.exchange import packed
from targets.machines.local import LocalMachine


async def done(machine: LocalMachine, request: dict[str, Any]) -> Any:
    """The value of the request. MachineError."""
    if "command" in request:
        return packed(await machine.run(tuple(request["command"]), request["deadline_s"]))
    ask, args = request["ask"], request["with"]
    if ask != "measure":
        return await machine.judge(ask, args, request["deadline_s"])
    async with machine.lease(decode(Device, args["device"])):
        return await machine.judge(ask, args, request["deadline_s"])


async def main(request: Path, answer: Path, cache: Path) -> None:
    """Writes the answer in one piece."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    machine = LocalMachine(cache)
    try:
        told: dict[str, Any] = {"value": await done(machine, json.loads(request.read_bytes()))}  # noqa: ASYNC240
    except MachineError as error:
        told = {"error": str(error)}
    finally:
        await asyncio.to_thread(machine.close)
    partial = answer.with_suffix(".partial")
    partial.write_text(json.dumps(told))
    partial.replace(answer)


if __name__ == "__main__":
    asyncio.run(main(*map(Path, sys.argv[1:])))
