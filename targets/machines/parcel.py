"""A spool that is carried by hand: packed here, its results taken back here."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from data.errors import MachineError, MisuseError
from targets.remote import pack
from targets.remote.jobs import Refused
from targets.remote.spool import NEWEST, Spool

TOP = "kforge-spool/"
"""The folder that a pack unfolds to."""
START = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/loader" --library-path "$here" "$here/bwrap.bin" "$@"
"""
"""Debian's bubblewrap, its loader and libraries are 3 MB and start anywhere (JUDGE.md, 7)."""


def write(folder: Path, out: Path, *, bubblewrap: bool) -> int:
    """Writes what another machine needs for the jobs that are left as one tar; their number.

    MisuseError when there is nothing to do or nothing to carry.
    """
    spool = Spool(folder)
    left = [name for name in spool.ids() if not spool.ended(spool.job(name))]
    newest = folder / NEWEST
    if not left or not newest.exists():
        raise MisuseError(f"{folder} holds no job to do; kforge port puts them there")
    same = newest.read_bytes()
    older = [p for p in folder.glob("*.pyz") if p.read_bytes() != same]
    files = {p.name: p for p in (newest, *older)}
    for name in left:  # with the rows that there are: the work goes on after them
        places = [folder / "jobs" / f"{name}.json", *(folder / "results" / name).glob("*.jsonl")]
        files |= {p.relative_to(folder).as_posix(): p for p in places}
    with tempfile.TemporaryDirectory() as place:
        carried = _sandbox(Path(place)) if bubblewrap else {}
        pack.write(out, {**files, **carried}, top=TOP)
    return len(left)


def take_back(path: Path, spools: Sequence[Spool]) -> dict[str, Spool]:
    """Puts the rows of a results.tar into the spools that asked for them; job to spool.

    Refused when the tar is damaged, or answers nothing that these spools asked for.
    """
    content = pack.read(path)
    answered = {Path(name).stem for name in content if name.startswith("jobs/")}
    ours = {name: spool for spool in spools for name in spool.ids() if name in answered}
    if not ours:
        listed = ", ".join(str(s.folder) for s in spools) or "none is known"
        raise Refused(f"{path} answers no job of ours (spools: {listed}); name one with --into DIR")
    for name, data in content.items():
        kind, *place = name.split("/")
        if kind == "results" and len(place) == 2 and place[0] in ours:
            ours[place[0]].receive(place[0], place[1], data)
    return ours


def _sandbox(place: Path) -> dict[str, Path]:
    """The bubblewrap of this machine with its loader and libraries, and a script that starts it."""
    program = shutil.which("bwrap")
    if program is None:
        raise MisuseError("no bwrap here to carry: install bubblewrap, or pack without it")
    start = place / "bwrap"
    start.write_text(START)
    start.chmod(0o755)
    found = {"bwrap": start, "bwrap.bin": Path(program).resolve()}
    for library in _libraries(program):
        found["loader" if library.name.startswith("ld-") else library.name] = library
    return {f"bubblewrap/{name}": file for name, file in found.items()}


def _libraries(program: str) -> list[Path]:
    """What the loader maps for the program, itself included."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MachineError(f"ldd cannot say what {program} needs: {done.stderr.strip()}")
    return [Path(word) for word in done.stdout.split() if word.startswith("/")]
