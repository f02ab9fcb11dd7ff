"""Ports a scripted pair into the ledger given as argument; slow enough to be killed in between."""

import asyncio
import random
import sys
from dataclasses import replace
from pathlib import Path

from agents.loop import port
from agents.strategy import next_move
from data.records import Iteration
from data.store import Ledger
from tasks.stages import now
from tests.agents.fakes import Scripted, pair

REPLIES = ["broken", "wrong", "0.5x", *[f"{1 + i / 10}x" for i in range(40)]]
PAIR = pair(steps=12)


async def main(root: Path) -> None:
    ledger = Ledger(root)
    known = ledger.history(PAIR.run_id, PAIR.operator.hash, PAIR.device.name)
    asked = sum(i.move.mode != "confirm" for i in known)
    script = Scripted(REPLIES[asked:])

    async def record(iteration: Iteration) -> None:
        await asyncio.sleep(random.uniform(0, 0.1))
        ledger.append(iteration)

    await port(PAIR, replace(script.stages(), record=record, now=now), known)
    ledger.compact(PAIR.run_id, PAIR.operator.hash, PAIR.device.name)
    done = ledger.history(PAIR.run_id, PAIR.operator.hash, PAIR.device.name)
    assert next_move(done, PAIR.settings) is None


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
