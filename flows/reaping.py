"""`kforge reap`: clears up on all machines, one line each."""

import json
from dataclasses import asdict

from tasks.reaping import reap


def clear(machines: tuple[str, ...], days: float, *, as_json: bool) -> int:
    """Prints what was done on each machine; 0 when all could be reached, else 1."""
    all_ok = True
    for reaped in reap(machines, days):
        all_ok = all_ok and reaped.ok
        if as_json:
            print(json.dumps(asdict(reaped)), flush=True)
        else:
            print(
                f"{'OK' if reaped.ok else 'FAIL':4}  {reaped.machine:17} {reaped.found}", flush=True
            )
    return 0 if all_ok else 1
