"""Accepted kernels on record, each as its latest confirming run left it."""

from collections import Counter
from pathlib import Path

from data import views
from data.records import Iteration
from data.store import Ledger


def champions(root: Path) -> tuple[Iteration, ...]:
    """All kernels that are accepted on hardware, the best of each place first.

    A place is an operator on a device under a contract: `place_of`. The first of a place is what
    the view `best` shows.
    """
    rows = views.query(root, views.question("accepted")).to_pylist()
    pairs = {(r["run_id"], r["operator_hash"], r["device"]) for r in rows}
    ledger = Ledger(root)
    known = {
        (run_id, i.operator.hash, i.device.name, str(i.contract), i.move.lineage, i.move.step): i
        for run_id, operator_hash, device in pairs
        for i in ledger.history(run_id, operator_hash, device)
    }
    found = (known.get(tuple(r[name] for name in _STEP)) for r in rows)
    return tuple(i for i in found if i is not None)


_STEP = ("run_id", "operator_hash", "device", "contract", "lineage", "step")


def place_of(iteration: Iteration) -> tuple[str, str, str]:
    """What a kernel is best of: operator, device and contract."""
    return (iteration.operator.hash, iteration.device.name, str(iteration.contract))


def standing(root: Path, operator: str, devices: tuple[str, ...]) -> str:
    """How the steps of an operator ended on these devices, commonest first; empty without any."""
    sql = "SELECT operator, device, verdict, count(*) AS n FROM stored.judged GROUP BY ALL"
    ended: Counter[str] = Counter()
    for row in views.query(root, sql).to_pylist():
        if row["operator"] == operator and row["device"] in devices:
            ended[str(row["verdict"])] += row["n"]
    return ", ".join(f"{verdict} ({n})" for verdict, n in ended.most_common())
