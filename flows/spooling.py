"""`kforge spool`: what a person does with a spool by hand."""

import json
import sys
from pathlib import Path

from data.errors import MisuseError
from data.files import ensure_writable
from data.store import Ledger
from flows.answers import print_table
from targets.machines import parcel
from targets.remote.jobs import Refused
from targets.remote.spool import Spool
from tasks import spooled


def pack(folder: Path, out: Path, *, bubblewrap: bool) -> None:
    """Writes the tar and says what to do with it."""
    count = parcel.write(folder, out, bubblewrap=bubblewrap)
    size = out.stat().st_size / 1e6
    print(
        f"{out}: {count} jobs, {size:.1f} MB; on the machine that holds the device:"
        f" tar xf {out.name} && cd {parcel.TOP.rstrip('/')}"
        " && python3 kforge-remote.pyz work . --minutes 9"
    )


def unpack(results: Path, into: Path | None, runs: Path) -> None:
    """Takes the rows back into spool and ledger; one line a job."""
    ensure_writable(runs)
    ledger = Ledger(runs)
    for name, spool in parcel.take_back(results, spooled.spools(into)).items():
        job = spool.job(name)
        new = spooled.imported(spool, job, ledger)
        state = "done" if spool.ended(job) else "not done yet"
        kept = f"{len(new)} new rows in {runs}, " if job.pair else ""
        print(f"{name}: {kept}{len(spool.rows(job))} in all, {state}")
        for line in spool.refusals():
            print(line, file=sys.stderr)


def status(folder: Path, *, as_json: bool) -> None:
    """Prints a line a job: how far it is, and whether somebody is at it."""
    if not (folder / "jobs").is_dir():
        raise MisuseError(f"{folder} is no spool: it has no folder jobs")
    spool = Spool(folder)
    rows = [_state(spool, name) for name in spool.ids()]
    if as_json:
        for row in rows:
            print(json.dumps(row))
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    for line in spool.refusals():
        print(line, file=sys.stderr)


def _state(spool: Spool, name: str) -> dict[str, object]:
    try:
        job = spool.job(name)
    except Refused as error:
        return {"job": name, "state": "refused", "rows": None, "latest": str(error)}
    rows = spool.rows(job)
    latest = rows[-1].iteration if rows else None
    held = spool.claims.held(name)
    state = "done" if spool.ended(job) else f"held by {held}" if held else "waits"
    verdict = latest.verdict.value if latest else ""
    return {"job": name, "state": state, "rows": len(rows), "latest": verdict}
