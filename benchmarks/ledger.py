"""How fast and how large a ledger of a million iterations is: 20 devices, 500 operators, sources.

    python benchmarks/ledger.py [--iterations N] [--folder DIR]

Makes the ledger in bulk (`ledger_rows.py`), then prints a line a figure, with the same of a naive
layout (a JSON file an iteration) beside it; exit code 1 when a bound is passed. What is asked is a
process of its own, as a person's `kforge query` is, the start of Python included.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import ledger_rows
import pyarrow.parquet as pq

from data.rows import to_json
from data.store import Ledger
from data.views import questions

APPEND_MS, QUERY_S, QUERY_GB, TRANSFER_S, REPORT_S, ROW_BYTES = 8.0, 2.0, 2.0, 3.0, 20.0, 1200.0
APPENDS, NAIVE = 200, 2000
KFORGE = Path(sys.executable).with_name("kforge")
SOURCE = (
    "SELECT source FROM iterations WHERE run_id = 'run00' AND operator = 'operator7' AND step = 5"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value beside its bound; None: printed only."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    processor: float | None = None
    """The part that was computing, on all cores together: on a busy machine the truer figure."""

    @property
    def passed(self) -> bool:
        return self.bound is not None and self.value > self.bound

    @property
    def line(self) -> str:
        told = (
            "" if self.bound is None else f"bound {self.bound:g} {'ABOVE' if self.passed else 'ok'}"
        )
        busy = "" if self.processor is None else f"{self.processor:8.2f} {self.unit} computing"
        return f"{self.name:40} {self.value:10.2f} {self.unit:5} {told:15} {busy}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Wall time and the largest memory of a process."""

    seconds: float
    processor: float
    """Seconds that it computed, on all cores together."""
    gigabytes: float


def cost(*words: str | Path) -> Cost:
    """What a command takes; CalledProcessError when it fails."""
    begin = time.perf_counter()
    child = subprocess.Popen([KFORGE, *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, list(map(str, words)))
    return Cost(
        seconds=time.perf_counter() - begin,
        processor=used.ru_utime + used.ru_stime,
        gigabytes=used.ru_maxrss / 1e6,
    )


def appended() -> Figure:
    """Milliseconds of one append: the median, as a neighbour's disk traffic is none of ours."""
    step, seconds, busy = ledger_rows.example(), [], []
    with tempfile.TemporaryDirectory() as empty:
        ledger = Ledger(Path(empty))
        for n in range(APPENDS):
            begin, began = time.perf_counter(), time.process_time()
            ledger.append(replace(step, move=replace(step.move, step=n)))
            seconds.append(time.perf_counter() - begin)
            busy.append(time.process_time() - began)
    return Figure(
        name="append",
        value=1000 * statistics.median(seconds),
        unit="ms",
        bound=APPEND_MS,
        processor=1000 * statistics.median(busy),
    )


def row_bytes(root: Path) -> float:
    """Bytes on disk of an iteration, its timings and its compiler's log; sources left out."""
    volumes = list((root / "iterations").rglob("*.parquet"))
    rows = sum(pq.read_metadata(path).num_rows for path in volumes)
    apart = [*(root / "timings").rglob("*.parquet"), *(root / "texts").glob("*-logs.parquet")]
    return sum(path.stat().st_size for path in (*volumes, *apart)) / rows


def source_bytes(root: Path) -> float:
    """Bytes on disk of a source: each is stored once."""
    paths = list((root / "texts").glob("*-sources.parquet"))
    rows = sum(pq.read_metadata(path).num_rows for path in paths)
    return sum(path.stat().st_size for path in paths) / rows


def figures(root: Path) -> Iterator[Figure]:
    """All that is measured, one after the other."""
    yield appended()
    yield Figure(name="row without sources", value=row_bytes(root), unit="bytes", bound=ROW_BYTES)
    yield Figure(name="source", value=source_bytes(root), unit="bytes")
    memory = 0.0
    for name in questions():
        asked = cost("query", name, "--json", "--runs", root)
        bound = TRANSFER_S if name == "transfer" else QUERY_S
        yield timed(f"query {name}", asked, bound)
        memory = max(memory, asked.gigabytes)
    yield Figure(name="largest memory of a query", value=memory, unit="GB", bound=QUERY_GB)
    sources = cost("query", SOURCE, "--json", "--runs", root).seconds
    yield Figure(name="query for 20 sources", value=sources, unit="s")
    yield Figure(name="history of a pair (resume)", value=resumed(root), unit="s")
    yield timed("report of the last run", reported(root), REPORT_S)
    yield from naive(root)


def resumed(root: Path) -> float:
    """Seconds to read a pair's steps back, sources and samples included."""
    begin = time.perf_counter()
    steps = Ledger(root).history("run00", ledger_rows.operator_hash(7), "device3")
    assert len(steps) == ledger_rows.STEPS, len(steps)
    return time.perf_counter() - begin


def timed(name: str, taken: Cost, bound: float) -> Figure:
    return Figure(name=name, value=taken.seconds, unit="s", bound=bound, processor=taken.processor)


def reported(root: Path) -> Cost:
    """What `kforge report` on the last run takes."""
    with tempfile.TemporaryDirectory() as empty:
        page = Path(empty) / "report.html"
        return cost("report", "--run", "last", "--out", page, "--runs", root)


def naive(root: Path) -> Iterator[Figure]:
    """A JSON file an iteration, measured on a few; each of the others is taken to be as slow."""
    rows = sum(pq.read_metadata(p).num_rows for p in (root / "iterations").rglob("*.parquet"))
    with tempfile.TemporaryDirectory() as empty:
        folder = Path(empty)
        begin = time.perf_counter()
        for n in range(NAIVE):
            step = ledger_rows.example()
            text = to_json(replace(step, move=replace(step.move, step=n)))
            (folder / f"{n}.json").write_text(text)
        written = time.perf_counter() - begin
        size = sum(path.stat().st_blocks * 512 for path in folder.iterdir())
        begin = time.perf_counter()
        right = sum(json.loads(p.read_text())["verdict"] == "CORRECT" for p in folder.iterdir())
        read = time.perf_counter() - begin
    assert right == NAIVE
    told = f"of {NAIVE} files, times {rows / NAIVE:g}"
    yield Figure(name="naive: append", value=1000 * written / NAIVE, unit="ms")
    yield Figure(name="naive: row", value=size / NAIVE, unit="bytes")
    yield Figure(name=f"naive: a question ({told})", value=read * rows / NAIVE, unit="s")


def main() -> int:
    """1 when a bound is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    whole = 1_000_000
    parser.add_argument("--iterations", type=int, default=whole)
    parser.add_argument("--folder", type=Path, help="Where the ledger is made and stays.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = given.folder or Path(temporary)
        if not (root / "iterations").exists():
            begin = time.perf_counter()
            # Apart: its memory would count as that of the first figures.
            made = multiprocessing.get_context("spawn").Process(
                target=ledger_rows.make, args=(root, given.iterations)
            )
            made.start()
            made.join()
            print(f"made {given.iterations} iterations in {time.perf_counter() - begin:.0f} s")
        passed = [f for f in figures(root) if print(f.line, flush=True) or f.passed]
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
