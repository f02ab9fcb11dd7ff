"""Results of other judges, taken into a ledger beside its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from data import files, kernelbench, views
from data.errors import MisuseError
from data.records import Operator
from data.rows import Row
from data.schema import ITERATIONS
from data.store import folder_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of the runs."""

    runs: int
    taken: int
    known: int


def take_in(root: Path, folder: Path, suite: Sequence[Operator] = ()) -> Imported:
    """Records what the KernelBench runs in a folder tell; what is on record already stays as it is.

    MisuseError when there is none, or when a run of this name is on record with other results.
    """
    found = kernelbench.runs(folder) if folder.is_dir() else []
    if not found:
        raise MisuseError(
            f"{folder} is neither a ledger nor a run of KernelBench; expected iterations/, or"
            f" {kernelbench.RESULTS} and level_L_problem_P_sample_S_kernel.py"
        )
    taken = known = 0
    for run in found:
        rows = kernelbench.rows(run, suite)
        fresh = _fresh(root, run, rows)
        for row in fresh:
            files.write_rows(root, _path(root, row), ITERATIONS, [row])
        taken, known = taken + len(fresh), known + len(rows) - len(fresh)
    return Imported(runs=len(found), taken=taken, known=known)


def _fresh(root: Path, run: Path, rows: list[Row]) -> list[Row]:
    """The rows that are not on record."""
    held = _on_record(root, rows[0]["run_id"])
    fresh = []
    for row in rows:
        other = held.get((row["operator_hash"], row["device"], row["step"]))
        if other is None:
            fresh.append(row)
        elif other != row["iteration_id"]:
            raise MisuseError(
                f"{run}: a run of this name is on record with another result for"
                f" {row['operator']}, sample {row['step']}; rename the folder to take both in"
            )
    return fresh


def _on_record(root: Path, run_id: str) -> dict[tuple[str, str, int], str]:
    """The iteration of each step of a run."""
    asked = "SELECT operator_hash, device, step, iteration_id FROM stored.steps WHERE run_id = ?"
    with views.connect(root) as connection:
        rows = connection.execute(asked, [run_id]).fetchall()
    return {(operator, device, step): iteration for operator, device, step, iteration in rows}


def _path(root: Path, row: Row) -> Path:
    place = folder_of(row["run_id"], row["operator_hash"], row["device"])
    name = f"step-{row['step']:03d}-{row['iteration_id']}.parquet"
    return root / ITERATIONS.name / place / name
