"""The kernels of this package, read from `kernels.json`."""

import json
from pathlib import Path
from typing import Any

import torch

from .kernel import Case, Facts, Kernel, Signature

KERNELS: dict[str, tuple[Kernel, ...]] = {}
"""By operator, filled once by `load`."""
_LIBRARIES: list[torch.library.Library] = []
"""Held as long as the process lives: operators go with their library."""


def load(package: str, file: str) -> dict[str, tuple[Kernel, ...]]:
    """The kernels by operator, entered in `torch.ops.PACKAGE`."""
    library = torch.library.Library(package, "DEF")
    _LIBRARIES.append(library)
    for entry in json.loads(Path(file).with_name("kernels.json").read_text(encoding="utf-8")):
        kernel = Kernel(package, library, facts(entry))
        KERNELS[kernel.facts.operator] = (*KERNELS.get(kernel.facts.operator, ()), kernel)
    return KERNELS


def facts(entry: dict[str, Any]) -> Facts:
    """What one entry of the file says."""
    return Facts(
        **{name: entry[name] for name in ("name", "operator", "place", "card", "policy")},
        inputs=tuple(entry["inputs"]),
        state=tuple(entry["state"]),
        returns=entry["returns"],
        kinds=tuple(entry["kinds"]),
        variants=tuple(tuple(arguments) for arguments in entry["variants"]),
        cases=tuple(_case(case) for case in entry["cases"]),
    )


def _case(entry: dict[str, Any]) -> Case:
    parts = {name: _signatures(entry[name]) for name in ("inputs", "state", "outputs")}
    return Case(shape=entry["shape"], variant=entry["variant"], sizes=entry["sizes"], **parts)


def _signatures(entries: list[Any]) -> tuple[Signature, ...]:
    return tuple((getattr(torch, dtype), tuple(shape)) for dtype, shape in entries)
