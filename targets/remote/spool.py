"""The folder of a spool, the same on both sides.

DIR/kforge-remote-HASH.pyz       what does the jobs; kforge-remote.pyz is the latest
DIR/jobs/ID.json                 one job, named by its content
DIR/claims/ID.N                  who does it (`claims.py`)
DIR/results/ID/003-HASH.jsonl    a row; end-HASH.jsonl when the job is done
DIR/refused/                     what was cut, changed or somebody else's
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from data.codec import dumps
from data.errors import MachineError
from data.records import Iteration
from data.verdict import judge
from targets.remote.claims import Claims
from targets.remote.jobs import End, Job, Refused, Row, opened, sealed

T = TypeVar("T", Row, End)
NEWEST = "kforge-remote.pyz"


class Spool:
    """Jobs in, rows out; any number of processes may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claims = Claims(folder / "claims")
        self._jobs: dict[str, Job] = {}
        self._refused: list[str] = []

    def post(self, job: Job) -> None:
        """Puts the job there, unless it is; MachineError when the disk does not take it."""
        path = self.folder / "jobs" / f"{job.id}.json"
        if not path.exists():
            self._put(path, f"{dumps(job)}\n".encode())

    def ids(self) -> list[str]:
        """Names of all jobs, sorted."""
        return sorted(p.stem for p in (self.folder / "jobs").glob("*.json"))

    def job(self, name: str) -> Job:
        """The job of that name; Refused when the file is not what it was."""
        if name not in self._jobs:
            path = self.folder / "jobs" / f"{name}.json"
            self._jobs[name] = opened(Job, path.name, self._content(path))
        return self._jobs[name]

    def put_row(self, row: Row) -> None:
        """Puts a result there in one rename; MachineError when the disk does not take it."""
        self._seal(row.job, f"{row.number:03d}", row)

    def rows(self, job: Job) -> list[Row]:
        """The job's results without a gap, in order; files that are amiss are set aside."""
        found: dict[int, Row] = {}
        for _, row in self._named_rows(job):
            earlier = found.setdefault(row.number, row)
            if _ended(row) < _ended(earlier):
                found[row.number] = row
        return [found[n] for n in range(len(found)) if all(k in found for k in range(n + 1))]

    def end(self, job: Job) -> None:
        """Says that the job is done with the rows that are there."""
        names = sorted(name for name, _ in self._named_rows(job))
        self._seal(job.id, "end", End(job=job.id, rows=tuple(names)))

    def ended(self, job: Job) -> bool:
        """Whether the job is done and all its rows have arrived: files may come in any order."""
        here = {p.name for p in self._results(job.id, "[0-9]*")}
        return any(
            end.job == job.id and here.issuperset(end.rows)
            for _, end in self._read(End, job.id, "end-*")
        )

    def receive(self, job: str, name: str, content: bytes) -> None:
        """Puts a result file that came by hand there; it is checked when it is read."""
        path = self.folder / "results" / job / name
        if not path.exists():
            self._put(path, content)

    def refusals(self) -> list[str]:
        """One line for each file that was set aside since the last time."""
        told, self._refused = self._refused, []
        return told

    def refuse(self, path: Path, why: str) -> None:
        """Sets a file aside, so that it is neither used nor looked at again."""
        place = self.folder / "refused" / f"{path.parent.name}-{path.name}"
        self._refused.append(f"refused {path.parent.name}/{path.name}: {why}")
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)

    def _named_rows(self, job: Job) -> Iterator[tuple[str, Row]]:
        for path, row in self._read(Row, job.id, "[0-9]*"):
            why = foreign(job, row)
            if why or not path.name.startswith(f"{row.number:03d}-"):
                self.refuse(path, why or "it is not the row that its name says")
            else:
                yield path.name, row

    def _read(self, kind: type[T], job: str, pattern: str) -> Iterator[tuple[Path, T]]:
        for path in self._results(job, pattern):
            try:
                yield path, opened(kind, path.name, self._content(path))
            except Refused as error:
                self.refuse(path, str(error))

    def _results(self, job: str, pattern: str) -> list[Path]:
        return sorted((self.folder / "results" / job).glob(f"{pattern}.jsonl"))

    def _seal(self, job: str, stem: str, value: object) -> None:
        name, text = sealed(stem, value)
        self._put(self.folder / "results" / job / name, text.encode("utf-8", "surrogatepass"))

    def _content(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise MachineError(f"cannot read {path}: {error.strerror}") from error

    def _put(self, path: Path, content: bytes) -> None:
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            message = f"cannot write {path}: {error.strerror}; free space or make it writable"
            raise MachineError(message) from error


def foreign(job: Job, row: Row) -> str:
    """Why the row is not one of this job; empty when it is."""
    if row.job != job.id:
        return f"it belongs to job {row.job}"
    if row.archive != job.archive:
        return f"archive {row.archive} made it, the job wants {job.archive}"
    if job.pair is None:
        return "" if row.number < len(job.asks) and row.iteration is None else "nobody asked for it"
    step, pair = row.iteration, job.pair
    if step is None or step.move.step != row.number:
        return f"it is not step {row.number} of a pair"
    theirs = (step.run_id, step.epoch, step.operator.hash, step.device, step.contract)
    ours = (pair.run_id, pair.epoch, pair.operator.hash, pair.device, pair.contract)
    if theirs != ours:
        return "its run, operator, device or contract is another one"
    return _unfounded(step)


def _unfounded(step: Iteration) -> str:
    """Why the verdict does not follow from the evidence beside it; empty when it does."""
    if step.build is None:
        return ""
    borne = judge(step.contract, step.build, step.run)
    if (borne.verdict, borne.speedup) == (step.verdict, step.speedup):
        return ""
    return f"its evidence bears {borne.verdict}, not {step.verdict}"


def _ended(row: Row) -> str:
    return row.iteration.ended_at if row.iteration else ""
