"""`kforge onboard`: PASS or FAIL for all that a new target and its device must have."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path

from tasks.devices import find
from tasks.health import Check
from tasks.newcomer import examine


def welcome(device: str, runs: Path, *, as_json: bool) -> int:
    """Prints a line a check; 0 when all pass, else 1."""
    (found,) = find((device,))
    failed: list[str] = []

    def seen(check: Check) -> None:
        failed.extend([] if check.ok else [check.name])
        line = f"{check.state}  {check.name:16} {check.found}"
        print(json.dumps(asdict(check)) if as_json else line, flush=True)

    asyncio.run(examine(found, runs, seen))
    return 1 if failed else 0
