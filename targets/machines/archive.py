"""`kforge-remote-HASH.pyz`: all that another machine needs beside Python and torch, in one file.

It holds the judge, the targets and the offline loop: every module of ours that those import, found
by reading the sources, and the material that they open. The same sources give the same bytes.
"""

import ast
import hashlib
import shutil
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from data.errors import MachineError
from targets.remote.unpack import IDENTITY

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "targets/machines/attach.py",
    "targets/machines/once.py",
    "targets/machines/resident.py",
    "targets/machines/reaping.py",
    "targets/*.py",
    "targets/remote/*.py",
    "agents/offline/*.py",
    "tasks/remote/*.py",
)
"""Where reading starts; some of these are started by name, so that no import leads to them."""
MATERIAL = (
    "targets/cards",
    "targets/examples",
    "targets/remote/emulation",
    "targets/remote/races",
    "agents/offline",
)
"""Folders of which every file travels."""
FIRST = "targets/remote/unpack.py"
BEGINNING = (1980, 1, 1, 0, 0, 0)
"""The date of every entry: the earliest that a zip can name."""


def build(folder: Path) -> Path:
    """The archive in `folder`, written unless it is there; MachineError when it cannot be."""
    path = folder / f"kforge-remote-{identity()}.pyz"
    if path.exists():
        return path
    partial = folder / f".{path.name}.{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as file:  # zlib's bytes vary
            for name, content in _entries():
                entry = zipfile.ZipInfo(name, BEGINNING)
                entry.create_system, entry.external_attr = 3, 0o644 << 16
                file.writestr(entry, content)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise MachineError(f"cannot write {path}: {error.strerror}; free space there") from error
    return path


def put(folder: Path, name: str) -> None:
    """Builds the archive in `folder` and keeps the newest there as `name` too. MachineError."""
    built, newest = build(folder), folder / name
    if newest.exists() and newest.read_bytes() == built.read_bytes():
        return
    partial = folder / f".{name}.{uuid.uuid4().hex}"
    try:
        shutil.copyfile(built, partial)
        partial.replace(newest)
    except OSError as error:
        raise MachineError(f"cannot write {newest}: {error.strerror}") from error


@cache
def identity() -> str:
    """16 hexadecimal digits for names and content of all that travels."""
    total = hashlib.sha256()
    for name, content in contents().items():
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:16]


@cache
def contents() -> dict[str, bytes]:
    """Every file that travels, by its name below the checkout, sorted."""
    files = modules()
    for folder in MATERIAL:
        files |= {p for p in (ROOT / folder).rglob("*") if p.is_file() and not _made(p)}
    return {p.relative_to(ROOT).as_posix(): p.read_bytes() for p in sorted(files)}


def modules() -> set[Path]:
    """The modules that reading starts from, all of ours that they import, and their packages."""
    found: set[Path] = set()
    waiting = [path for pattern in CODE for path in ROOT.glob(pattern)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [f for name in _imported(path) for f in _files(name)]
    return found


def _entries() -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", contents()[FIRST]
    yield IDENTITY, f"{identity()}\n".encode()
    yield from contents().items()


def _imported(path: Path) -> Iterator[str]:
    """Full names in the import statements of a module, those inside functions too."""
    yield path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files(name: str) -> Iterator[Path]:
    """The files of a module and of the packages round it; none for what is not ours."""
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        place = ROOT.joinpath(*parts[:depth])
        yield from (p for p in (place / "__init__.py", place.with_suffix(".py")) if p.is_file())


def _made(path: Path) -> bool:
    """Whether Python made the file itself."""
    return "__pycache__" in path.parts or path.name.startswith(".")
