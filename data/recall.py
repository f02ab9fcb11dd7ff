"""Lessons and references out of a ledger, by SQL over its verdicts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data.memory import Lesson, Reference
from data.records import Contract, Device, Operator
from data.views import query

MOST = 5
"""Lessons for a prompt, best first."""
LEAST_GAIN = 1.02
NEW = "(new)"
"""How `what_to_try_first` calls a device that nobody has used yet."""
LESSONS = "FROM what_to_try_first ORDER BY rank"
REFERENCE = """SELECT operator_hash, contract, device, candidate_id, language, source, speedup,
    parameters, techniques
FROM best WHERE speedup IS NOT NULL AND source IS NOT NULL"""


def lessons(
    root: Path, devices: Sequence[Device], contract: Contract
) -> dict[str, tuple[Lesson, ...]]:
    """The techniques that are worth a try, best first, by `device/family`."""
    rows = [
        row
        for row in query(root, LESSONS).to_pylist()
        if row["contract"] == str(contract) and row["expected_gain"] > LEAST_GAIN
    ]
    used = {row["device"] for row in rows}
    found: dict[str, tuple[Lesson, ...]] = {}
    for device in devices:
        known_as = device.name if device.name in used else NEW
        for row in (r for r in rows if r["device"] == known_as):
            place = f"{device.name}/{row['family']}"
            found[place] = (*found.get(place, ()), _lesson(row))[:MOST]
    return found


def _lesson(row: dict[str, Any]) -> Lesson:
    return Lesson(**{name: row[name] for name in Lesson.__slots__})


def references(
    root: Path, device: str, contract: Contract, operators: Sequence[Operator]
) -> dict[str, Reference]:
    """The device's best confirmed kernels of these operators, by the operator's hash."""
    wanted = {operator.hash for operator in operators}
    return {
        row["operator_hash"]: _reference(row)
        for row in query(root, REFERENCE).to_pylist()
        if (row["device"], row["contract"]) == (device, str(contract))
        and row["operator_hash"] in wanted
    }


def _reference(row: dict[str, Any]) -> Reference:
    known = {name: row[name] for name in Reference.__slots__}
    known |= {
        "parameters": json.loads(row["parameters"] or "{}"),
        "techniques": tuple(row["techniques"] or ()),
    }
    return Reference(**known)
