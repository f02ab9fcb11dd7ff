"""`kforge judge`: rulings on given files, each printed when it is known."""

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from data.files import ensure_writable
from targets.machines.spool import SpoolMachine
from tasks import devices
from tasks.judgement import Ruling, Terms, exit_code, rulings
from tasks.machines import close_machines, machine_for
from tasks.pages import interval
from tasks.placing import benches
from tasks.rehearsal import rehearse
from tasks.subjects import Subject


def judge_all(given: tuple[Subject, ...], terms: Terms, runs: Path, *, as_json: bool) -> int:
    """Prints one ruling a candidate; the exit code."""
    devices.find((terms.device,))
    ensure_writable(runs)
    return asyncio.run(_judge(given, terms, runs, as_json=as_json))


async def _judge(given: tuple[Subject, ...], terms: Terms, runs: Path, *, as_json: bool) -> int:
    (device,) = devices.find((terms.device,))
    verdicts: list[str] = []
    try:
        machine = machine_for(device, runs)
        if isinstance(machine, SpoolMachine):
            await rehearse(machine, given, terms)
        async for ruling in rulings(benches(device, runs), given, terms):
            verdicts.append(ruling.verdict)
            print(json.dumps(asdict(ruling)) if as_json else _line(ruling), flush=True)
            if len(given) > 1:
                print(f"[{len(verdicts)}/{len(given)}] {_line(ruling)}", file=sys.stderr)
    finally:
        close_machines()
    return exit_code(verdicts)


def _line(ruling: Ruling) -> str:
    speedup = interval(ruling.speedup, ruling.speedup_low, ruling.speedup_high)
    review = " (needs review)" if ruling.needs_review else ""
    timed = f" {speedup} over {ruling.baseline}" if ruling.speedup is not None else ""
    return f"{ruling.candidate}: {ruling.verdict}{review}{timed}: {ruling.reason}"
