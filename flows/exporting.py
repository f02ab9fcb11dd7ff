"""`kforge export`: confirmed kernels as a package that needs torch alone."""

import json
import sys
from pathlib import Path

from data.upkeep import require
from tasks.export.chosen import Terms
from tasks.export.planned import planned
from tasks.export.writing import Package, write


def export(terms: Terms, folder: Path, *, as_json: bool) -> None:
    """Prints what was written; names on stderr what was left out."""
    require(terms.runs)
    made = write(planned(terms, folder))
    for left in made.left_out:
        print(f"kforge: left out {left.name}: {left.reason}", file=sys.stderr)
    if as_json:
        print(json.dumps(_told(made)))
        return
    print(f"{made.folder}: package {made.name} with {', '.join(made.kernels)}")
    print(f"next: pip install {made.folder}; python -m {made.name} verify")


def _told(made: Package) -> dict[str, object]:
    left = {each.name: each.reason for each in made.left_out}
    return {
        "folder": str(made.folder),
        "package": made.name,
        "kernels": list(made.kernels),
        "left_out": left,
    }
