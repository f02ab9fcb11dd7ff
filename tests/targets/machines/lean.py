"""A Python with torch and what torch itself needs, and nothing else: another machine's."""

import re
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path


def lean_python(folder: Path) -> Path:
    """The interpreter of a fresh virtual environment below `folder` with linked packages."""
    place = folder / "lean"
    command = [sys.executable, "-m", "venv", "--without-pip", str(place)]
    subprocess.run(command, check=True, timeout=60)
    (packages,) = place.glob("lib/python3*/site-packages")
    for found in _needed("torch"):
        for name in _top_level(found):
            (packages / name).symlink_to(str(found.locate_file(name)))
    return place / "bin" / "python"


def _needed(name: str) -> list[Distribution]:
    """The distribution and all that it requires without extras."""
    known: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        wanted = waiting.pop()
        try:
            found = distribution(wanted)
        except PackageNotFoundError:  # for other systems
            continue
        if found.name not in known:
            known[found.name] = found
            plain = (r for r in found.requires or () if "extra ==" not in r)
            waiting += [re.split(r"[^A-Za-z0-9._-]", r, maxsplit=1)[0] for r in plain]
    return list(known.values())


def _top_level(found: Distribution) -> set[str]:
    names = {Path(str(f)).parts[0] for f in found.files or ()}
    return {n for n in names if n not in ("..", "__pycache__") and not n.endswith(".pth")}
