"""How fast and how large a ledger of a million iterations is: 20 devices, 500 operators, sources.

    python benchmarks/ledger.py [--iterations N] [--folder DIR]

Makes the ledger in bulk, then prints a line a figure; exit code 1 when a bound is passed. Each
question is a process of its own, as `kforge query` is.
"""

import argparse
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from data import files
from data.reading import VOLUME
from data.records import (
    Candidate,
    Contract,
    Device,
    Iteration,
    Mode,
    Move,
    Operator,
    RunResult,
    RunStatus,
    Timing,
)
from data.rows import iteration_row, timing_rows
from data.schema import ITERATIONS, TIMINGS, Table
from data.store import Ledger
from data.techniques import TECHNIQUES
from data.verdict import Verdict
from data.views import questions

DEVICES, OPERATORS, STEPS = 20, 500, 100
LOT = 50_000
"""Rows that are made at once."""
APPEND_MS, QUERY_S, QUERY_GB, TRANSFER_S, ROW_BYTES = 8.0, 2.0, 2.0, 3.0, 1200.0
APPENDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value beside its bound."""

    name: str
    value: float
    bound: float
    unit: str

    @property
    def line(self) -> str:
        word = "ok" if self.value <= self.bound else "ABOVE"
        return f"{self.name:32} {self.value:10.2f} {self.unit:5} bound {self.bound:g} {word}"


def kernels(rng: np.random.Generator, count: int = 2000) -> list[str]:
    """Sources of about 2 kB, no two alike."""
    words = [f"v{n}" for n in range(200)] + ["float", "for", "acc", "+=", "*", "(", ")", "[i]", ";"]
    return [" ".join(words[n] for n in rng.integers(0, len(words), 450)) for _ in range(count)]


def example() -> Iteration:
    """A timed step with all that a judged one has."""
    timing = Timing(
        shape="full",
        baseline="eager",
        ratio=1.5,
        low=1.45,
        high=1.55,
        pair_ratios=(1.49, 1.5, 1.51),
        candidate_us=100.0,
        baseline_us=150.0,
        parent_ratio=1.1,
        parent_low=1.05,
        parent_high=1.15,
        samples_us=tuple(100.0 + n % 7 for n in range(30)),
    )
    return Iteration(
        run_id="run",
        epoch="default",
        operator=Operator(name="o", source="OPERATOR", family="norm"),
        device=Device(name="d0", target="cpu", vendor="v0", arch="a"),
        contract=Contract(),
        move=Move(mode=Mode.OPTIMISE, step=0, lineage="a"),
        verdict=Verdict.CORRECT,
        reason="1.50x over eager, 95 % interval 1.45 to 1.55",
        candidate=Candidate(
            source="SOURCE", language="cpp", agent_kind="offline", agent_name="m", parents=("p",)
        ),
        run=RunResult(status=RunStatus.RAN, timings=(timing,), isolation="bubblewrap"),
        techniques_added=("tile",),
        gain_over_parent=1.1,
        speedup=1.5,
        speedup_low=1.45,
        speedup_high=1.55,
        baseline="eager",
        environment={"torch": "2.13.0", "compiler": "g++ 12.2.0", "driver": "580.1"},
        started_at="2026-01-01T00:00:00+00:00",
        ended_at="2026-01-01T00:01:00+00:00",
    )


def lots(total: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Rows of `iterations` and `timings` in the order of the pairs."""
    rng = np.random.default_rng(0)
    sources = kernels(rng)
    row = iteration_row(example())
    (timing,) = timing_rows(example(), "")
    for start in range(0, total, LOT):
        number = np.arange(start, min(start + LOT, total))
        shared = _shared(number)
        texts = [
            f"// {n}\n{sources[k]}"
            for n, k in zip(number, rng.integers(0, 2000, len(number)), strict=True)
        ]
        gain = np.exp(rng.normal(0.02, 0.2, len(number)))
        own = _own(number, texts, gain, str(row["record"]))
        yield _filled(ITERATIONS, row, shared | own), _filled(TIMINGS, timing, shared)


def _shared(number: np.ndarray) -> dict[str, object]:
    pair, step = np.divmod(number, STEPS)
    operator, device = np.divmod(pair, DEVICES)
    return {
        "iteration_id": [f"{n:016x}" for n in number * 2654435761],
        "operator": np.char.add("operator", (operator % OPERATORS).astype(str)),
        "operator_hash": [f"{n:016x}" for n in (operator % OPERATORS) * 40503],
        "device": np.char.add("d", device.astype(str)),
        "step": step,
        "candidate_id": [f"{n:016x}" for n in number * 2246822519],
    }


def _own(number: np.ndarray, texts: list[str], gain: np.ndarray, record: str) -> dict[str, object]:
    pair, step = np.divmod(number, STEPS)
    tags = list(TECHNIQUES)
    last = step == STEPS - 1
    return {
        "vendor": np.char.add("v", (pair % DEVICES % 4).astype(str)),
        "family": np.char.add("f", (pair // DEVICES % 12).astype(str)),
        "mode": np.where(last, "confirm", "optimise"),
        "verdict": np.where(number % 10 < 3, "WRONG", "CORRECT"),
        "source": texts,
        "record": [record.replace("SOURCE", text) for text in texts],
        "techniques_added": [[tags[n % 37 % len(tags)]] if n % 3 else [] for n in number],
        "gain_over_parent": gain,
        "gain_low": gain / 1.05,
        "gain_high": gain * 1.05,
        "speedup": gain * 1.5,
    }


def _filled(table: Table, row: dict[str, object], given: dict[str, object]) -> pa.Table:
    """The given columns, the others with the value of `row`."""
    count = len(given["step"])  # type: ignore[arg-type]  # an array
    columns = []
    for field in table.schema:
        if field.name in given:
            columns.append(pa.array(given[field.name], field.type))
        else:
            columns.append(pa.repeat(pa.scalar(row.get(field.name), field.type), count))
    return pa.table(columns, schema=table.schema)


def make(root: Path, total: int) -> None:
    """Writes the volumes."""
    for n, made in enumerate(lots(total)):
        for table, rows in zip((ITERATIONS, TIMINGS), made, strict=True):
            place = root / table.name / "run" / f"{VOLUME}{n:04d}.parquet"
            files.write(root, place, rows, group_rows=10_000)


def appended_ms(folder: Path) -> float:
    """Milliseconds of one append."""
    ledger, step = Ledger(folder), example()
    begin = time.perf_counter()
    for n in range(APPENDS):
        ledger.append(replace(step, move=replace(step.move, step=n)))
    return 1000 * (time.perf_counter() - begin) / APPENDS


def asked(root: Path, name: str) -> tuple[float, float]:
    """Seconds and the largest memory in GB of a question as a process."""
    kforge = Path(sys.executable).with_name("kforge")
    begin = time.perf_counter()
    subprocess.run(
        [kforge, "query", name, "--json", "--runs", root], check=True, stdout=subprocess.DEVNULL
    )
    seconds = time.perf_counter() - begin
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6


def row_bytes(root: Path) -> float:
    """Compressed bytes of an iteration and its timings, the columns with sources left out."""
    size = rows = 0
    for path in root.rglob(f"{VOLUME}*.parquet"):
        found = pq.read_metadata(path)
        rows += found.num_rows if "iterations" in path.parts else 0
        groups = (found.row_group(n) for n in range(found.num_row_groups))
        for group in groups:
            chunks = (group.column(n) for n in range(group.num_columns))
            size += sum(
                c.total_compressed_size
                for c in chunks
                if c.path_in_schema not in {"source", "record"}
            )
    return size / rows


def figures(root: Path) -> Iterator[Figure]:
    """All that is measured, one after the other."""
    with tempfile.TemporaryDirectory() as empty:
        yield Figure(name="append", value=appended_ms(Path(empty)), bound=APPEND_MS, unit="ms")
    yield Figure(name="row without sources", value=row_bytes(root), bound=ROW_BYTES, unit="bytes")
    memory = 0.0
    for name in questions():
        seconds, memory = asked(root, name)
        bound = TRANSFER_S if name == "transfer" else QUERY_S
        yield Figure(name=f"query {name}", value=seconds, bound=bound, unit="s")
    yield Figure(name="largest memory of a query", value=memory, bound=QUERY_GB, unit="GB")


def main() -> int:
    """1 when a bound is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=DEVICES * OPERATORS * STEPS)
    parser.add_argument("--folder", type=Path, help="Where the ledger is made and stays.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = given.folder or Path(temporary)
        if not (root / "iterations").exists():
            begin = time.perf_counter()
            # Apart: what a process held counts as its children's memory too.
            made = multiprocessing.get_context("spawn").Process(
                target=make, args=(root, given.iterations)
            )
            made.start()
            made.join()
            print(f"made {given.iterations} iterations in {time.perf_counter() - begin:.0f} s")
        passed = [
            figure for figure in figures(root) if print(figure.line) or figure.value > figure.bound
        ]
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
