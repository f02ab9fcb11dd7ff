"""`kforge ledger`: what a person does with the files of a ledger."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from data import files, imports, upkeep, volumes
from data.operator import read_suite
from flows.answers import print_table


def check(runs: Path, *, as_json: bool) -> int:
    """Prints a line a table and names the files that are set aside; 1 when there are any."""
    rows = [asdict(state) for state in upkeep.check(runs)]
    if as_json:
        for row in rows:
            print(json.dumps(row))
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    aside = upkeep.set_aside(runs)
    for path in aside:
        print(f"kforge: set aside: {path}; look at it, then remove it", file=sys.stderr)
    lost = sum(row["lost"] for row in rows)
    if lost:
        told = "texts are lost; what else their rows hold is answered, those steps are done again"
        print(f"kforge: {lost} {told}", file=sys.stderr)
    return 1 if aside or lost else 0


def compact(runs: Path) -> None:
    """Prints what went into volumes."""
    upkeep.require(runs)
    done = volumes.gather(runs)
    print(f"{runs}: {done.rows} rows of {done.files} files are in volumes now")


def record(runs: Path, run_id: str, out: Path) -> None:
    """Prints what the file holds."""
    from tasks.recording import record as write  # noqa: PLC0415  (the agents' templates)

    done = write(runs, run_id, out)
    print(f"{out}: {len(done.rows)} steps and {len(done.said)} replies of {', '.join(done.models)}")


def merge(runs: Path, other: Path) -> int:
    """Prints what was taken; 1 when a file was refused."""
    files.ensure_writable(runs)
    done = upkeep.merge(runs, other)
    print(f"{runs}: {done.taken} files taken from {other}, {done.known} were here already")
    for path in done.refused:
        print(f"kforge: refused {path}: no file of the ledger", file=sys.stderr)
    return 1 if done.refused else 0


def export(runs: Path, out: Path) -> None:
    """Prints where it is."""
    upkeep.export(runs, out)
    print(f"{out}: open it with any DuckDB tool; kforge query shows the same views")


def attach(runs: Path, out: Path) -> None:
    """Prints where it is."""
    upkeep.attach(runs, out)
    print(f"{out}: open it with any DuckDB tool while {runs} stays there; again for new rows")


def import_from(runs: Path, folder: Path, suite: Path | None) -> int:
    """Prints what was taken; 1 when a file of another ledger was refused."""
    if (folder / "iterations").is_dir():
        return merge(runs, folder)
    operators = read_suite(suite) if suite else ()
    done = imports.take_in(runs, folder, operators)
    print(f"{runs}: {done.taken} kernels of {done.runs} runs, {done.known} were here already")
    return 0
