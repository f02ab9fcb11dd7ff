"""`kforge operators from-model`: what a model spends its time in, as operator files."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from tasks.from_model.writing import Written, write


def from_model(model: Path, folder: Path, top: int, *, as_json: bool) -> None:
    """Prints a line an operator; what has no file is named on stderr."""
    for one in write(model, folder, top):
        if as_json:
            print(json.dumps(asdict(one)))
        elif one.file:
            print(f"{folder / one.file}  {_told(one)}")
        else:
            print(f"kforge: no file for {_told(one)}: {one.why_not}", file=sys.stderr)


def _told(one: Written) -> str:
    more = f" and {len(one.shapes) - 1} more sizes" if len(one.shapes) > 1 else ""
    return f"{one.op}  {one.share:.1%} of the time, {one.calls} calls, {one.shapes[0]}{more}"
