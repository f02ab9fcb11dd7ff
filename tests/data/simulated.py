"""Ledgers whose true effects are known: steps that add one technique, drawn at random."""

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from data.schema import TABLES
from data.views import over

NOISE = 0.03
"""Standard deviation of a measured gain's logarithm."""
PLACES = {"a1": "va", "a2": "va", "b1": "vb", "c1": "vc"}
REPEATS = 2
"""Steps of one operator on one device: they share its effect, so they are one observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Mean and spread over operators of a technique's log gain, by device."""

    technique: str
    mean: dict[str, float]
    spread: float = 0.0
    """Drawn anew for each device: what a gain here says nothing of."""


def ledger() -> duckdb.DuckDBPyConnection:
    """A connection with the views over nothing."""
    return over({t.name: t.schema.empty_table() for t in TABLES.values()})


def fill(
    connection: duckdb.DuckDBPyConnection,
    truths: tuple[Truth, ...],
    rng: np.random.Generator,
    *,
    operators: int = 20,
    ledgers: int = 1,
) -> None:
    """Replaces the rows by newly drawn ones; each of several ledgers is a contract of its own."""
    for truth in truths:
        for place in PLACES:
            connection.register("drawn", _steps(truth, place, rng, (ledgers, operators)))
            connection.execute("INSERT INTO stored.iterations BY NAME SELECT * FROM drawn")
            connection.unregister("drawn")


def _steps(truth: Truth, place: str, rng: np.random.Generator, size: tuple[int, int]) -> pa.Table:
    ledger, operator = (np.repeat(i, REPEATS) for i in np.nonzero(rng.random(size) < 0.9))
    rows = len(ledger)
    effect = truth.mean.get(place, 0.0) + truth.spread * rng.standard_normal(rows // REPEATS)
    logs = np.repeat(effect, REPEATS) + NOISE * rng.standard_normal(rows)
    fixed = {
        "run_id": "r",
        "device": place,
        "vendor": PLACES[place],
        "lineage": truth.technique,
        "family": "norm",
        "mode": "optimise",
        "verdict": "CORRECT",
        "execution": "hardware",
    }
    columns = {name: pa.repeat(value, rows) for name, value in fixed.items()}
    return pa.table(
        columns
        | {
            "schema_version": pa.repeat(3, rows),
            "iteration_id": np.char.add(f"{truth.technique}{place}", np.arange(rows).astype(str)),
            "contract": ledger.astype(str),
            "operator": operator.astype(str),
            "operator_hash": operator.astype(str),
            "step": np.tile(np.arange(REPEATS), rows // REPEATS),
            "parent_ids": pa.repeat(pa.scalar(["p"]), rows),
            "techniques_added": pa.repeat(pa.scalar([truth.technique]), rows),
            "gain_over_parent": np.exp(logs),
            "gain_low": np.exp(logs - 1.96 * NOISE),
            "gain_high": np.exp(logs + 1.96 * NOISE),
        }
    )
