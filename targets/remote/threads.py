"""Whether the threads of a candidate race: two calls in a child of its own, thread by thread.

That threads meet in a call is chance, so that equal inputs again and again find a race only
sometimes. Here a second library of the same source shows each access, and what no barrier, lock or
atomic operation orders is a race, whoever came first (docs/design/races.md).
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import MachineError
from data.records import SMALL, RunStatus
from targets.remote import inherited, strays
from targets.remote.bench import Bench
from targets.remote.compiler import compiled, racing
from targets.remote.draws import OFFICIAL_DRAW, draw
from targets.remote.fork import Fork, fork
from targets.remote.kforge_launch import CPP, LANGUAGES, source_hash
from targets.remote.output import SideFault
from targets.remote.products import Sources, sources_of
from targets.remote.races.build import LACKING
from targets.remote.races.located import lines
from targets.remote.races.watched import RACES
from targets.remote.side import Side

POISON = (0x81, 0x01)
"""What new memory holds in each call: a value that is there already would hide a race."""
TEAMS = re.compile(r"\bomp\b(?:[^\n]|\\\n)*\bparallel\b")
"""How threads are started that are looked at: also behind `_Pragma`."""
OTHERS = re.compile(r"\bstd::(?:j?thread|async)\b|\bpthread_create\b|\bthrd_create\b")
ASSEMBLY = re.compile(r"\b(?:asm|__asm__|__asm)\b")
SHOWN = 2
"""Races that a verdict names."""
LENGTH = 80
"""Characters of a source line in a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """What was seen of a candidate's threads, none of which race."""

    told: str = ""
    """One line for the environment of a result; empty where there are no threads."""
    review: tuple[str, ...] = ()
    """Why they were not looked at although there are some."""

    @property
    def environment(self) -> dict[str, str]:
        return {"races": self.told} if self.told else {}


@dataclass(frozen=True, slots=True)
class Compiling:
    """The libraries of a candidate with threads, while they are made beside the other checks."""

    sources: Sources
    job: Fork


@dataclass(frozen=True, slots=True)
class Seen:
    """One call in one library."""

    source: int
    """Number of the kernel source, from 0."""
    threads: int
    accesses: int
    why: str
    """Why not all was looked at; empty where all was."""
    races: tuple[tuple[int, bool, int, bool], ...]
    """Offset of an access, whether it writes, and the same of an earlier one."""


@contextmanager
def compiling(bench: Bench) -> Iterator[Compiling | None]:
    """The libraries, which are made beside the block; None where no kernel starts threads here."""
    sources = _threaded(bench)
    if not sources:
        yield None
        return
    job = fork(lambda: _made(bench.cache, sources))
    try:
        yield Compiling(sources, job)
    finally:
        job.end()


def _threaded(bench: Bench) -> Sources:
    """The kernel sources of the candidate where one starts threads on the processor, else none."""
    job = bench.job
    if job.device.execution != "hardware" or bench.kind.maps_answers:
        return ()
    sources = sources_of(bench.cache, job.device, job.source) or ()
    threaded = any(language in LANGUAGES and starts(text) for language, text in sources)
    return sources if threaded else ()


def starts(source: str) -> bool:
    """Whether a kernel source starts threads.

    >>> starts("#pragma omp parallel for"), starts("#pragma omp simd"), starts("std::thread t(f);")
    (True, False, True)
    """
    return bool(TEAMS.search(source) or OTHERS.search(source))


def looked_at(bench: Bench, started: Compiling | None) -> Threads:
    """What the threads do to each other. Raises SideFault when they race."""
    if started is None:
        return Threads()
    try:
        made = started.job.result()
    except MachineError as error:
        return _unseen(str(error))
    if reasons := [why for why in made["reasons"] if why]:
        return _unseen(reasons[0])
    with _libraries(bench, started.sources, Path(made["folder"])) as folder:
        try:
            seen = _calls(bench, started.sources, folder)
        except SideFault as fault:
            if fault.fault.status is RunStatus.WRONG:
                raise
            return _unseen(str(fault))
    return _told(seen)


def _unseen(why: str) -> Threads:
    told = f"its threads were not looked at: {' '.join(why.split())[:200]}"
    return Threads(told=told, review=(told,))


def _told(seen: Sequence[Seen]) -> Threads:
    threads = max((s.threads for s in seen), default=0)
    if threads < 2:
        return Threads(told="no region of several threads ran")
    accesses = sum(s.accesses for s in seen)
    told = f"no race of {threads} threads in {accesses} accesses"
    why = next((s.why for s in seen if s.why), "")
    return Threads(told=f"{told}; {why}" if why else told)


def _made(cache: Path, sources: Sources) -> dict[str, Any]:
    """In a process of its own: the folder of the libraries, and why one is missing."""
    tools = racing(cache)
    folder = cache / "kernels" / tools.key
    reasons = []
    for language, text in sources:
        if language in LANGUAGES and starts(text):
            why = _lacking(text)
            done = None if why else compiled(cache, tools, language, text)
            reasons.append(_why(done.output) if done and not done.ok else why)
    return {"folder": str(folder), "reasons": reasons}


def _lacking(source: str) -> str:
    """What in a source is not understood; empty where all is."""
    if other := OTHERS.search(source):
        return f"they are started by {other[0]}"
    return "a kernel waits in assembly" if ASSEMBLY.search(source) else ""


def _why(output: str) -> str:
    if output.startswith(LACKING):
        return f"they use {output.removeprefix(LACKING).strip()}"
    return f"the library for it was not built: {output[-200:]}"


@contextmanager
def _libraries(bench: Bench, sources: Sources, made: Path) -> Iterator[Path]:
    """The candidate's folder, with libraries that look in the place of those that start threads."""
    folder = inherited.folder(bench.cache)
    try:
        for place in (made, bench.own):
            for language, text in sources:
                name = _name(language, text)
                if place is not None and (place / name).exists() and not (folder / name).exists():
                    os.link(place / name, folder / name)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _name(language: str, source: str) -> str:
    return source_hash(language, source) + Path(CPP.product).suffix


def _calls(bench: Bench, sources: Sources, folder: Path) -> list[Seen]:
    """All that was seen; a shape at which threads ran ends it. Raises SideFault for a race."""
    found: list[Seen] = []
    names = [_name(*source) for source in sources]
    official = bench.loaded.official
    for shape in dict.fromkeys((SMALL if SMALL in bench.loaded.shapes else official, official)):
        with bench.candidate(bench.job.source, ghost=folder) as side:
            for turn in range(len(POISON)):
                seen = _call(bench, side, shape, (folder, turn))
                found += (told := _parsed(seen, names))
                if any(s.races for s in told):
                    where = _where(told, sources, folder)
                    raise SideFault(RunStatus.WRONG, f"shape {shape}: data race: {where}")
                if any(s.why for s in told):
                    break  # the call may still be running
        if any(s.threads > 1 for s in found):
            break
    return found


def _call(bench: Bench, side: Side, shape: str, how: tuple[Path, int]) -> Any:
    folder, turn = how
    example = draw(bench.loaded, shape, OFFICIAL_DRAW, bench.seed + 11 + turn)
    if turn == 0:
        side.construct(bench.loaded.init_args(shape), example.state)
    side.inputs([example.inputs])
    side.poison([], POISON[turn])
    return side.races(folder, turn)


def _parsed(seen: Any, names: Sequence[str]) -> list[Seen]:
    """What a child said of each library; SideFault when it is something else."""
    try:
        return [
            Seen(
                names.index(told["library"]),
                int(told["threads"]),
                int(told["accesses"]),
                str(told["why"])[:200],
                tuple(
                    (int(a), one is True, int(b), two is True)
                    for a, one, b, two in told["races"][:RACES]
                ),
            )
            for told in seen
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise SideFault(RunStatus.FORGED, "something else than what its threads did") from error


def _where(seen: Sequence[Seen], sources: Sources, folder: Path) -> str:
    """The lines that race, the first ones."""
    said: list[str] = []
    for s in seen:
        language, text = sources[s.source]
        offsets = [offset for race in s.races for offset in (race[0], race[2])]
        with strays.folder() as room:
            known = lines(folder / _name(language, text), offsets, room)
        of = f" of kernel source {s.source + 1}" if len(sources) > 1 else ""
        quoted = {o: _quoted(text, known.get(o), of) for o in offsets}
        for now, writes, before, wrote in s.races:
            first, second = (now, before) if writes else (before, now)
            does = "writes" if writes and wrote else "reads"
            said.append(f"{quoted[first]} writes what {quoted[second]} {does} in another thread")
    return "; ".join(list(dict.fromkeys(said))[:SHOWN])


def _quoted(source: str, line: int | None, of: str) -> str:
    r"""A line for people.

    >>> _quoted("int a;\n  a = 1;", 2, "")
    'line 2 (a = 1;)'
    """
    text = source.split("\n")[line - 1 : line] if line else []
    return f"line {line}{of} ({text[0].strip()[:LENGTH]})" if text else "code of a header"
