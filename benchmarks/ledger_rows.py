"""A ledger as campaigns leave it, made in bulk: the packed form of `data/texts.py`, row by row.

Ten runs of 500 operators each on 20 devices, 10 steps a pair: a quarter wrong, a tenth not built,
the last step confirms; every other run shows foreign kernels. A row's record is the packed one of
an example in which every measured value is drawn anew, so that it compresses as badly as a real
one. A model works one device in five.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from ledger_example import SAMPLES, SHAPES, Template, call, example, kernel, kernels, log

from data import files, texts
from data.reading import VOLUME
from data.records import Contract, digest
from data.rows import CallKey, call_row, iteration_row, timing_rows
from data.schema import ITERATIONS, LLM_CALLS, TIMINGS, Table
from data.techniques import TECHNIQUES
from data.volumes import GROUP_ROWS

DEVICES, OPERATORS, STEPS, RUNS = 20, 500, 10, 10
LOT = 50_000
"""Rows that are made at once, and lie in one volume."""
MODELLED = 5
"""Every so many-th device is worked by a language model, one call a step."""
CONFIRMED = 80
"""Raw times of a shape where a step confirms: five pairs."""
WRONG, BROKEN = 0.25, 0.10


def make(root: Path, total: int) -> None:
    """Writes volumes of so many iterations with their timings, calls and texts."""
    rng = np.random.default_rng(0)
    bases = kernels()
    for start in range(0, total, LOT):
        lot = Lot(np.arange(start, min(start + LOT, total)), rng, bases)
        for name, held in (("sources", lot.sources), ("logs", lot.logs)):
            made = texts.table_of(held)
            place = root / "texts" / f"{VOLUME}{start:09d}-{name}.parquet"
            files.write(root, place, made, group_rows=texts.GROUP_ROWS)
        for table, rows in ((ITERATIONS, lot.iterations()), (TIMINGS, lot.timings())):
            place = root / table.name / lot.run / f"{VOLUME}{start:09d}.parquet"
            files.write(root, place, rows, group_rows=GROUP_ROWS)
        calls = lot.calls()
        place = root / "llm_calls" / lot.run / f"{VOLUME}{start:09d}.parquet"
        files.write(root, place, calls, group_rows=GROUP_ROWS)


class Lot:
    """The rows of one volume: pairs one after the other, steps in order."""

    def __init__(self, number: np.ndarray, rng: np.random.Generator, bases: list[str]) -> None:
        self.number, self._rng = number, rng
        pair, self.step = np.divmod(number, STEPS)
        run, pair = np.divmod(pair, OPERATORS * DEVICES)
        self._operator, self._device = np.divmod(pair, DEVICES)
        self.run, self.shown = f"run{run[0]:02d}", bool(run[0] % 2)
        draw = rng.random(len(number))
        self.wrong, self.broken = draw < WRONG, (draw >= WRONG) & (draw < WRONG + BROKEN)
        self.last = self.step == STEPS - 1
        self.gain = np.exp(rng.normal(0.02, 0.2, len(number)))
        self.ids = [digest(str(n)) for n in number]
        self._candidates(bases)

    def _candidates(self, bases: list[str]) -> None:
        """A source a step; the last one confirms the step before with its source."""
        made = [kernel(bases, n, n // STEPS) for n in (self.number - self.last).tolist()]
        logs = [log(n) for n in self.number.tolist()]
        self.source_ids, self.log_ids = ([digest(text) for text in held] for held in (made, logs))
        self.candidates = [digest("cpp", text) for text in made]
        self.sources = dict(zip(self.source_ids, made, strict=True))
        self.sources |= {digest(bases[o]): bases[o] for o in set(self._operator % len(bases))}
        self._operator_ids = [digest(base) for base in bases]
        self.logs = dict(zip(self.log_ids, logs, strict=True))

    def shared(self) -> dict[str, object]:
        """The columns of every table."""
        return {
            "run_id": pa.repeat(self.run, len(self.number)),
            "operator": [f"operator{n}" for n in self._operator],
            "operator_hash": [operator_hash(n) for n in self._operator],
            "device": [f"device{n}" for n in self._device],
            "step": self.step,
        }

    def iterations(self) -> pa.Table:
        """The rows of `iterations`."""
        right, size = ~(self.wrong | self.broken), len(self.ids)
        timed = np.where(right, 1.0, np.nan)
        tags = list(TECHNIQUES)
        verdict = np.where(self.wrong, "WRONG", np.where(self.gain > 1.1, "FASTER", "CORRECT"))
        own = {
            "iteration_id": self.ids,
            "vendor": [f"vendor{n % 4}" for n in self._device],
            "family": [f"family{n % 12}" for n in self._operator],
            "mode": np.where(self.last, "confirm", np.where(self.step, "optimise", "create")),
            "verdict": np.where(self.broken, "BUILD_FAILED", verdict),
            "reason": self._reasons(),
            "candidate_id": self.candidates,
            "reference": pa.repeat(pa.scalar("kernel" if self.shown else None, pa.string()), size),
            "parent_ids": [[self.candidates[n - 1]] if s else [] for n, s in enumerate(self.step)],
            "source": pa.nulls(len(self.ids), pa.string()),
            "source_id": self.source_ids,
            "techniques_added": [[tags[n % 37 % len(tags)]] if n % 3 else [] for n in self.number],
            "agent_kind": np.where(self._device % MODELLED, "offline", "llm"),
            "model": [None if n % MODELLED else "some/model" for n in self._device],
            "build_seconds": self._rng.random(size),
            "run_seconds": 5 * self._rng.random(size),
            "record": list(self._records()),
            "started_at": self._moments(0),
            "ended_at": self._moments(40),
        }
        ratios = {"speedup": 1.5, "speedup_low": 1.43, "speedup_high": 1.58}
        ratios |= {"gain_over_parent": 1.0, "gain_low": 0.95, "gain_high": 1.05}
        own |= {
            n: pa.array(self.gain * scale * timed, from_pandas=True) for n, scale in ratios.items()
        }
        own["baseline"] = pa.array(np.where(right, "eager", None))
        return _filled(ITERATIONS, iteration_row(example()), self.shared() | own)

    def timings(self) -> pa.Table:
        """One row for half of the right steps, two for the others."""
        right = np.nonzero(~(self.wrong | self.broken))[0]
        second = right[self.number[right] % 2 == 1]
        parts = [self._timed(right, SHAPES[0]), self._timed(second, SHAPES[1])]
        return pa.concat_tables(parts).sort_by(
            [("operator_hash", "ascending"), ("device", "ascending")]
        )

    def _timed(self, at: np.ndarray, shape: str) -> pa.Table:
        (row,) = timing_rows(example((shape,)), "")
        counts = np.where(self.last[at], CONFIRMED, SAMPLES)
        ratio = self.gain[at] * 1.5
        base = 50 * np.exp(self._rng.normal(0, 1, len(at)))
        noise = np.exp(self._rng.normal(0, 0.03, counts.sum()))
        latencies = np.repeat(base, counts) * noise
        pairs = np.repeat(ratio, 3) * np.exp(self._rng.normal(0, 0.02, 3 * len(at)))
        shared = {n: pa.array(v).take(pa.array(at)) for n, v in self.shared().items()}
        own = {
            "iteration_id": [self.ids[n] for n in at],
            "candidate_id": [self.candidates[n] for n in at],
            "latencies": pa.ListArray.from_arrays(_offsets(counts), latencies),
            "pair_ratios": pa.ListArray.from_arrays(np.arange(0, 3 * len(at) + 1, 3), pairs),
            "candidate_us": base,
            "baseline_us": base * ratio,
            "others": [json.dumps({"torch.compile": v}) for v in base * 1.7],
        }
        ratios = ("ratio", "low", "high", "parent_ratio", "parent_low", "parent_high", "null_us")
        own |= {n: ratio * self._rng.uniform(0.9, 1.1, len(at)) for n in ratios}
        return _filled(TIMINGS, row, shared | own)

    def calls(self) -> pa.Table:
        """A call for every step of the devices that a model works."""
        at = pa.array(np.nonzero(self._device % MODELLED == 0)[0])
        key = CallKey(
            run_id="", operator_hash="", device="", contract=str(Contract()), lineage="a", step=0,
            role="generator",
        )  # fmt: skip
        row = call_row(key, 0, call())
        shared = {n: pa.array(v).take(at) for n, v in self.shared().items() if n != "operator"}
        size = len(at)
        own = {
            "call_id": [digest("call", self.ids[n.as_py()]) for n in at],
            "prompt_tokens": self._rng.integers(2000, 9000, size),
            "completion_tokens": self._rng.integers(300, 3000, size),
            "cost_usd": self._rng.random(size) / 100,
            "seconds": self._rng.random(size) * 60,
        }
        return _filled(LLM_CALLS, row, shared | own)

    def _records(self) -> Iterator[str]:
        """Packed records: of steps timed at one shape or two, and of those that were not right."""
        whole = example()
        assert whole.run is not None
        untimed = {
            "speedup": None,
            "speedup_low": None,
            "speedup_high": None,
            "gain_over_parent": None,
        }
        failed = replace(
            whole, **untimed, run=replace(whole.run, timings=(), draws=whole.run.draws[:4])
        )
        broken = replace(failed, run=None)
        one, two, wrong, unbuilt = map(Template, (example(SHAPES[:1]), whole, failed, broken))
        moments = zip(self._moments(0), self._moments(40), self._reasons(), strict=True)
        for n, (began, ended, reason) in enumerate(moments):
            twice = two if self.number[n] % 2 else one
            template = unbuilt if self.broken[n] else wrong if self.wrong[n] else twice
            words = self._words(n) | {"REASON": reason, "STARTED": str(began), "ENDED": str(ended)}
            yield template.filled(words, iter(self._rng.lognormal(0, 1, 100).tolist()))

    def _words(self, n: int) -> dict[str, str]:
        operator, device = self._operator[n], self._device[n]
        return {
            "RUN": self.run,
            "OPERATOR": f"operator{operator}",
            "OPERATOR_SOURCE": self._operator_ids[operator % len(self._operator_ids)],
            "DEVICE": f"device{device}",
            "VENDOR": f"vendor{device % 4}",
            "PARENT": self.candidates[n - 1] if self.step[n] else "",
            "SOURCE": self.source_ids[n],
            "LOG": self.log_ids[n],
        }

    def _reasons(self) -> list[str]:
        said = (
            f"{1.5 * g:.2f}x over eager, 95 % interval {1.4 * g:.2f} to {1.6 * g:.2f}"
            for g in self.gain
        )
        ends = zip(said, self.wrong, self.broken, self.number, strict=True)
        return [
            f"kernel.cpp:{n % 90}: expected ';'"
            if b
            else f"wrong at [{n % 97}, 3] of full"
            if w
            else s
            for s, w, b, n in ends
        ]

    def _moments(self, after: int) -> np.ndarray:
        """Times of a campaign in which each device does a step in about a minute."""
        seconds = self.number // DEVICES * 60 + after + self.number % 17
        return np.datetime64("2026-01-01T00:00:00", "us") + seconds.astype("timedelta64[s]")


def operator_hash(number: int) -> str:
    """The hash of the n-th operator."""
    return digest(f"operator{number}")


def _offsets(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _filled(table: Table, row: dict[str, object], given: dict[str, object]) -> pa.Table:
    """`given` columns, and the example's value in all others."""
    size = len(next(iter(given.values())))  # type: ignore[arg-type]  # columns of any kind
    schema = table.schema
    columns = [
        pa.array(given[f.name]).cast(f.type)
        if f.name in given
        else pa.repeat(pa.scalar(row.get(f.name), type=f.type), size)
        for f in schema
    ]
    return pa.table(columns, schema=schema)
