"""Accepted kernels looked at again, as a flow and as the command `kforge requalify`."""

import asyncio
import json
import sys

from data.errors import MachineError, StandingError
from data.files import ensure_writable
from tasks.requalify import Terms, requalify
from tasks.standing import Place, rows


def look_again(terms: Terms, *, as_json: bool) -> int:
    """Prints a line a place; 0 when all hold. StandingError when one lost its standing."""
    ensure_writable(terms.runs)

    def seen(place: Place) -> None:
        for row in rows((place,)):
            print(json.dumps(row) if as_json else _line(row), flush=True)

    done = asyncio.run(requalify(terms, seen=seen))
    if not done:
        print("kforge: no accepted kernel is on record", file=sys.stderr)
    judge(done)
    return 0


def judge(done: tuple[Place, ...]) -> None:
    """StandingError when kernels lost their standing, MachineError when some were not reached."""
    alarms = [alarm for place in done for alarm in place.alarms]
    faults = [f"{place.name}: {place.fault}" for place in done if place.fault]
    if alarms:
        more = f"; {len(faults)} places were not reached" if faults else ""
        raise StandingError(
            f"{len(alarms)} accepted kernels do not hold: {'; '.join(alarms)}{more}"
        )
    if faults:
        raise MachineError(f"{len(faults)} places were not reached: {'; '.join(faults)}")


def _line(row: dict[str, str | None]) -> str:
    alarm = f"  ALARM {row['alarm']}" if row["alarm"] else ""
    leader = f"  leads now: {row['leader']}" if row["leader"] else ""
    return f"{row['pair']}  {row['before']} -> {row['now']}{alarm}{leader}"
