"""`kforge doctor`: PASS or FAIL for all that a campaign needs."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from flows import server
from tasks import served
from tasks.health import Check, checks
from tasks.hosts import host_checks


def examine(runs: Path, *, as_json: bool) -> int:
    """Prints a line a check; 0 when all pass, else 1."""
    all_ok = True
    for check in _all(runs):
        all_ok = all_ok and check.ok
        if as_json:
            print(json.dumps(asdict(check)), flush=True)
        else:
            print(f"{check.state}  {check.name:22} {check.found}", flush=True)
    return 0 if all_ok else 1


def _all(runs: Path) -> Iterator[Check]:
    yield from checks(runs)
    yield _server(runs)
    yield from host_checks(runs)


def _server(runs: Path) -> Check:
    """The server that a campaign would use; none yet is no fault, a dead one that is set is."""
    if given := os.environ.get("PREFECT_API_URL"):
        ok = served.healthy(given)
        said = "answers" if ok else "does not answer; start it, or unset PREFECT_API_URL"
        return Check(name="prefect-server", ok=ok, found=f"{server.public(given)} {said}")
    known = served.recorded(runs)
    if known is not None and server.alive(known) and served.healthy(known.url):
        return Check(name="prefect-server", ok=True, found=f"running at {known.page}")
    return Check(name="prefect-server", ok=True, found="none runs yet; kforge port starts one")
