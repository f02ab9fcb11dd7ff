"""What a number depends on besides its operator: versions, compiler, processor, our own method."""

import hashlib
import platform
import shutil
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parent.parent
METHOD = ("agents", "targets", "data/verdict.py", "data/techniques.py")
"""Sources whose change makes other numbers: prompts, templates, judge."""


@cache
def version_of_the_method() -> str:
    """Hash of the sources that decide what is tried and how it is judged."""
    total = hashlib.sha256()
    for name in METHOD:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[:16]


@cache
def environment() -> dict[str, str]:
    """Versions that the controller can tell without importing torch."""
    return {
        "kforge": _installed("kforge"),
        "torch": _installed("torch"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "compiler": _compiler(),
    }


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _compiler() -> str:
    """Path and change time of the compiler: `subprocess` is not for this layer."""
    found = shutil.which("g++") or shutil.which("clang++")
    if found is None:
        return "none"
    real = Path(found).resolve()
    return f"{real.name} {int(real.stat().st_mtime)}"
