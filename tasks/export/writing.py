"""The package as files: kernels, references, what is carried, and the pages."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import jinja2

from data.codec import encode
from data.errors import ExportError
from tasks.export.chosen import LeftOut
from tasks.export.described import Described
from tasks.export.names import title
from tasks.export.planned import Part, Plan, require_new
from tasks.export.verification import page_of

HERE = Path(__file__).parent
CARRIED = HERE / "carried"
TEXTS = HERE / "texts"
ROOT = HERE.parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What was written."""

    folder: Path
    name: str
    kernels: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def write(plan: Plan) -> Package:
    """The package in its folder; nothing half-written is left."""
    folder = plan.folder
    require_new(folder)
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.absolute().parent) as made:
            _fill(Path(made, "package"), plan.name, plan.parts, plan.left_out)
            if folder.exists():
                folder.rmdir()
            Path(made, "package").rename(folder.absolute())
    except OSError as error:
        raise ExportError(f"cannot write {folder}: {error.strerror}") from error
    entries = tuple(part.entry.name for part in plan.parts)
    return Package(folder=folder, name=plan.name, kernels=entries, left_out=plan.left_out)


def _fill(folder: Path, name: str, parts: Sequence[Part], left_out: Sequence[LeftOut]) -> None:
    package = folder / name
    for inner in ("kernels", "operators"):
        (package / inner).mkdir(parents=True)
        (package / inner / "__init__.py").touch()
    for part in parts:
        (package / "kernels" / f"{part.entry.name}.py").write_text(part.source)
        (package / "operators" / f"{part.entry.operator}.py").write_text(
            part.kernel.operator.source
        )
    entries = [encode(part.entry) for part in parts]
    (package / "kernels.json").write_text(json.dumps(entries, indent=1) + "\n")
    for path in CARRIED.glob("*.py"):
        if path.name not in {"__init__.py", "kforge_build.py"}:
            shutil.copy(path, package / path.name)
    shutil.copy(CARRIED / "kforge_build.py", folder / "kforge_build.py")
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE")
    _pages(folder, name, parts, left_out)


def _pages(folder: Path, name: str, parts: Sequence[Part], left_out: Sequence[LeftOut]) -> None:
    """What templates make."""
    now = datetime.now(UTC)
    values = {
        "package": name,
        "version": now.strftime("%Y.%-m.%-d"),
        "today": now.date().isoformat(),
        "devices": ", ".join(dict.fromkeys(part.kernel.device.name for part in parts)),
        "operators": _operators([part.entry for part in parts]),
        "needs": _needs(parts),
        "kernels": [page_of(part.kernel, part.entry) for part in parts],
        "left_out": [(left.name, left.reason) for left in left_out],
    }
    (folder / "tests").mkdir()
    pages = {
        f"{name}/__init__.py": "init.py.j2",
        "pyproject.toml": "pyproject.toml.j2",
        "README.md": "README.md.j2",
        "VERIFICATION.md": "VERIFICATION.md.j2",
        "tests/test_package.py": "test_package.py.j2",
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEXTS),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - Python and Markdown, not HTML
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    for path, template in pages.items():
        (folder / path).write_text(environment.get_template(template).render(**values))


def _operators(entries: Sequence[Described]) -> list[dict[str, object]]:
    """For the templates: each operator with its names and kernels."""
    names = dict.fromkeys(entry.operator for entry in entries)
    made: list[dict[str, object]] = []
    for name in names:
        mine = [entry for entry in entries if entry.operator == name]
        plain = not mine[0].state and mine[0].variants == [[]]
        made.append(
            {
                "name": name,
                "title": title(name),
                "plain": plain,
                "arguments": ", ".join(map(repr, mine[0].variants[0])),
                "kernels": [entry.name for entry in mine],
            }
        )
    return made


def _needs(parts: Sequence[Part]) -> str:
    """What a machine must have beside torch."""
    languages = dict.fromkeys(p.kernel.candidate.language for p in parts if p.kernel.candidate)
    named = {"cpp": "g++ or clang++", "c": "g++ or clang++"}
    needed = dict.fromkeys(named.get(word, f"a compiler for {word}") for word in languages)
    return f", and {' and '.join(needed)} where kernels are to be used" if needed else ""
