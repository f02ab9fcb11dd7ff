"""What a package would hold, known before anything is written."""

from dataclasses import dataclass
from pathlib import Path

from data.errors import KForgeError, MisuseError
from data.records import Iteration
from tasks import pages
from tasks.export.chosen import LeftOut, Terms, chosen, name_of, require
from tasks.export.described import Described, described
from tasks.export.joining import one_file
from tasks.export.names import package_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A kernel on its way into the package."""

    kernel: Iteration
    entry: Described
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A package that can be written as it stands: the ledger is not asked again."""

    folder: Path
    name: str
    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]


def planned(terms: Terms, folder: Path) -> Plan:
    """The package that the terms mean, for a folder that is not there yet, or empty.

    MisuseError and ExportError as `tasks.export.chosen.chosen` has them, and for such a folder.
    """
    name = package_name(folder)
    require_new(folder)
    found = chosen(terms)
    parts, left_out = [], list(found.left_out)
    for kernel in found.kernels:
        assert kernel.candidate is not None
        try:
            source = one_file(kernel.candidate, kernel.device)
            parts.append(Part(kernel=kernel, entry=described(kernel), source=source))
        except KForgeError as error:
            left_out.append(LeftOut(name=name_of(kernel), reason=str(error)))
    require({part.kernel.operator.name for part in parts}, left_out, terms)
    return Plan(folder=folder, name=name, parts=tuple(parts), left_out=tuple(left_out))


def require_new(folder: Path) -> None:
    """MisuseError for a folder that holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MisuseError(f"{folder} exists and is not empty; name a new folder")


def rows(plan: Plan) -> list[pages.Row]:
    """One row a kernel that would be in it, then one for each that stays, with its reason."""
    kept: list[pages.Row] = [
        {
            "kernel": name_of(part.kernel),
            "goes": "yes",
            "speed-up": pages.speed(part.kernel),
            "baseline": part.kernel.baseline or "-",
            "contract": str(part.kernel.contract),
            "candidate": part.kernel.candidate_id,
            "confirmed": part.kernel.ended_at[:10],
            "look first": pages.clean("; ".join(part.kernel.run.review if part.kernel.run else ())),
        }
        for part in plan.parts
    ]
    stay: list[pages.Row] = [
        {"kernel": left.name, "goes": f"no: {pages.clean(left.reason)}"} for left in plan.left_out
    ]
    return kept + stay
