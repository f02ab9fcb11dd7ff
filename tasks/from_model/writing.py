"""Operator files of a model in a folder, with what the profile said of them."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from data.errors import ExportError, MisuseError
from data.operator import read_operator
from tasks.from_model.profile import Tensor, Used, used
from tasks.from_model.source import Group, fault, groups, source


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One group of calls and the file that was made of it."""

    op: str
    share: float
    """Of the time of all operators."""
    calls: int
    shapes: tuple[str, ...]
    """The tensors of each size, parameters included: `float32[64, 256]`."""
    file: str = ""
    why_not: str = ""
    """Why there is no file."""


def write(model: Path, folder: Path, top: int) -> tuple[Written, ...]:
    """The operators that take longest as files in a folder, those without one too.

    `profile.json` beside them holds the figures: a file is the same in the next profile, so that
    its pairs stay on record. MisuseError when the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MisuseError(f"{folder} exists and is not empty; name a new folder")
    found = groups(used(model))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = _files(found, model.name, folder, top)
        rows = [_row(one) for one in written]
        (folder / "profile.json").write_text(json.dumps(rows, indent=1) + "\n")
    except OSError as error:
        raise ExportError(f"cannot write {folder}: {error.strerror}") from error
    return written


def _files(found: tuple[Group, ...], model: str, folder: Path, top: int) -> tuple[Written, ...]:
    total = sum(group.microseconds for group in found) or 1.0
    names: Counter[str] = Counter()
    written: list[Written] = []
    for group in found:
        if sum(bool(one.file) for one in written) == top:
            break
        why, file = fault(group.call), ""
        if not why:
            stem = re.sub(r"\W+", "_", group.call.op.split(".")[1]).strip("_")
            names[stem] += 1
            file = f"{stem}_{names[stem]}.py" if names[stem] > 1 else f"{stem}.py"
            (folder / file).write_text(source(group, model))
            read_operator(folder / file)
        written.append(_written(group, group.microseconds / total, file, why))
    return tuple(written)


def _written(group: Group, share: float, file: str, why: str) -> Written:
    return Written(
        op=group.call.op,
        share=share,
        calls=sum(member.calls for member in group.members),
        shapes=tuple(_shown(member) for member in group.members),
        file=file,
        why_not=why,
    )


def _shown(one: Used) -> str:
    values = [*one.call.arguments, *(value for _, value in one.call.keywords)]
    tensors = [value for value in values if isinstance(value, Tensor)]
    return ", ".join(f"{tensor.dtype}{list(tensor.shape)}" for tensor in tensors)


def _row(one: Written) -> dict[str, object]:
    return {
        "op": one.op,
        "file": one.file or None,
        "share": round(one.share, 4),
        "calls": one.calls,
        "shapes": list(one.shapes),
        "why_not": one.why_not or None,
    }
