"""`kforge onboard`: PASS or FAIL for all that a new target and its device must have."""

import json
from dataclasses import asdict
from pathlib import Path

from tasks.devices import find
from tasks.newcomer import checks


def welcome(device: str, runs: Path, *, as_json: bool) -> int:
    """Prints a line a check; 0 when all pass, else 1."""
    (found,) = find((device,))
    all_ok = True
    for check in checks(found, runs):
        all_ok = all_ok and check.ok
        state = "PASS" if check.ok else "FAIL"
        said = json.dumps(asdict(check)) if as_json else f"{state}  {check.name:16} {check.found}"
        print(said, flush=True)
    return 0 if all_ok else 1
