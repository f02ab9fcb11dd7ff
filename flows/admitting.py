"""`kforge admit`: a table that a person can read, and a line for each refusal."""

import asyncio
import json
import sys
from pathlib import Path

from data.codec import encode
from data.files import ensure_writable
from data.records import Operator
from flows.answers import print_table
from tasks.admission import Admitted, Terms, admissions
from tasks.machines import close_machines, machine_for

COLUMNS = (
    *("operator", "outcome", "planted faults seen", "S_x", "S_p", "precision at", "e0"),
    *("MB a call", "floor us", "baseline us", "headroom", "seconds", "marks"),
)


def admit_all(operators: tuple[Operator, ...], terms: Terms, runs: Path, *, as_json: bool) -> int:
    """Prints the report; 0 when all are admitted, else 1."""
    ensure_writable(runs)
    found = asyncio.run(_admit(operators, terms, runs, as_json=as_json))
    if not as_json:
        _print(found)
    return 0 if all(a.admission.admitted for a in found) else 1


async def _admit(
    operators: tuple[Operator, ...], terms: Terms, runs: Path, *, as_json: bool
) -> list[Admitted]:
    found: dict[str, Admitted] = {}
    try:
        machine = machine_for(terms.device, runs)
        async for admitted in admissions(machine, operators, terms):
            found[admitted.operator.hash] = admitted
            if as_json:
                print(json.dumps(_plain(admitted)), flush=True)
            print(f"[{len(found)}/{len(operators)}] {_line(admitted)}", file=sys.stderr)
    finally:
        close_machines()
    return [found[o.hash] for o in operators]


def _line(admitted: Admitted) -> str:
    return f"{admitted.operator.name}: {_said(admitted)} ({admitted.admission.seconds:.1f} s)"


def _said(admitted: Admitted) -> str:
    outcome, reason = admitted.admission.outcome, admitted.admission.reason
    return f"{outcome}: {reason}" if outcome else reason


def _plain(admitted: Admitted) -> dict[str, object]:
    """For machines: all that is known but the traced graph."""
    operator, admission = admitted.operator, encode(admitted.admission)
    assert isinstance(admission, dict)
    named = {"operator": operator.name, "suite": operator.suite, "hash": operator.hash}
    return {**named, **{k: v for k, v in admission.items() if k != "graph"}}


def _print(found: list[Admitted]) -> None:
    print_table(list(COLUMNS), [_row(a) for a in found])
    refused = [a for a in found if not a.admission.admitted]
    print(f"{len(found) - len(refused)} of {len(found)} operators are admitted")
    for admitted in refused:
        print(
            f"{admitted.operator.name}: {admitted.admission.outcome}: {admitted.admission.reason}"
        )


def _row(admitted: Admitted) -> list[object]:
    admission = admitted.admission
    oracle = admission.oracle
    shape = admission.official
    baseline = admission.baseline_us.get(shape.name) if shape else None
    floor = shape.floor_us if shape else None
    decided = f"x{oracle.precision_scale:g}" if oracle and oracle.precision_scale else None
    return [
        admitted.operator.name,
        str(admission.outcome or "admitted"),
        ", ".join(map(str, oracle.strengths)) if oracle else None,
        oracle.sensitivity if oracle else None,
        oracle.parameter_sensitivity if oracle else None,
        decided,
        oracle.own_error if oracle else None,
        admission.call_bytes / 1e6 if admission.call_bytes is not None else None,
        floor,
        baseline,
        f"{baseline / floor:.2f}x" if baseline and floor else None,
        admission.seconds,
        "; ".join(admission.marks) or None,
    ]
