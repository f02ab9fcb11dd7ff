"""What transfer claims is true of simulated ledgers, and next to nothing is claimed of noise."""

import math
from typing import Any

import duckdb
import numpy as np
import pytest

from data.views import question
from tests.data.simulated import PLACES, Truth, fill, ledger

EVERYWHERE = dict.fromkeys(PLACES, 0.2)
PLANTED = (
    Truth(technique="tile", mean=EVERYWHERE, spread=0.05),
    Truth(technique="unroll", mean={"a1": 0.2, "a2": 0.2, "b1": -0.2, "c1": 0.0}, spread=0.01),
    Truth(technique="prefetch", mean={}),
)
NOISY = (
    *(Truth(technique=f"none{n}", mean={}) for n in range(3)),
    *(Truth(technique=f"unrelated{n}", mean={}, spread=0.2) for n in range(5)),
    Truth(technique="here only", mean={"a1": 0.3}),
)
"""No effect; effects that differ from device to device at random; an effect on one device alone."""


def asked(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
    return rows


def cells(truths: tuple[Truth, ...], seed: int = 0) -> dict[tuple[str, ...], dict[str, Any]]:
    connection = ledger()
    fill(connection, truths, np.random.default_rng(seed))
    rows = asked(connection, question("transfer"))
    return {(r["level"], r["technique"], r["here"], r["there"]): r for r in rows}


@pytest.mark.parametrize("seed", range(3))
def test_planted_effects_are_recovered(seed: int) -> None:
    """Transfer, negative transfer and no effect are told apart, with the planted size."""
    found = cells(PLANTED, seed)
    same = found["device", "tile", "a1", "b1"]
    assert same["finding"] == "transfers"
    assert same["p_low"] < same["p_helps"] <= same["p_high"]
    assert same["gain_low"] <= math.exp(0.2) <= same["gain_high"]
    worse = found["device", "unroll", "a1", "b1"]
    assert worse["finding"] == "backfires"
    assert worse["helped_there"] == 0
    assert worse["hurt_there"] == worse["helped_here"] > 10
    assert worse["median_gain"] == pytest.approx(math.exp(-0.2), rel=0.05)
    assert found["device", "unroll", "a1", "a2"]["finding"] == "transfers"
    assert found["device", "prefetch", "a1", "b1"]["finding"] == "too few"


def test_vendors_are_asked_too() -> None:
    """A vendor's devices together are one place; a vendor is not compared with itself."""
    found = cells(PLANTED)
    assert found["vendor", "tile", "va", "vb"]["finding"] == "transfers"
    assert found["vendor", "unroll", "va", "vb"]["finding"] == "backfires"
    assert not [k for k in found if k[2] == k[3]]


def test_repeated_steps_are_one_observation() -> None:
    """Two steps of one operator count once: no cell has more than the 20 operators."""
    assert max(r["tried_on_both"] for r in cells(PLANTED).values()) <= 20


def test_no_claim_below_the_minimum_support() -> None:
    """Seven operators prove nothing, however clear they look."""
    connection = ledger()
    fill(connection, PLANTED, np.random.default_rng(0), operators=7)
    found = asked(connection, question("transfer"))
    assert found
    assert {r["finding"] for r in found} == {"too few"}
    assert {r["q"] for r in found} == {None}


def false_claims(ledgers: int) -> int:
    """How many of so many ledgers without any transfer make a claim."""
    connection = ledger()
    fill(connection, NOISY, np.random.default_rng(7), ledgers=ledgers)
    rows = asked(connection, question("transfer"))
    assert len({r["contract"] for r in rows}) == ledgers
    return len({r["contract"] for r in rows if r["finding"] in {"transfers", "backfires"}})


def test_noise_is_rarely_claimed() -> None:
    """Of 40 ledgers at most 5 make a claim: at 5 % more would be a chance of 1 in 70."""
    assert false_claims(40) <= 5


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_noise_is_claimed_at_the_stated_rate() -> None:
    """Of 1,000 ledgers without transfer at most 5 % make any claim, all cells taken together."""
    assert false_claims(1000) <= 50


@pytest.mark.parametrize(("up", "down"), [(0, 0), (8, 0), (3, 9), (250, 250), (1, 499)])
def test_the_sign_test_is_exact(up: int, down: int) -> None:
    """Against the sum of binomial coefficients."""
    n = up + down
    exact = 2 * sum(math.comb(n, k) for k in range(min(up, down) + 1)) / 2**n
    ((p,),) = ledger().execute(f"SELECT sign_test({up}, {down})").fetchall()
    assert p == pytest.approx(min(1.0, exact), rel=1e-9)


def test_the_interval_of_a_median_covers_it() -> None:
    """The chance that the median lies outside its order statistics is at most 5 % and a little."""
    ranks = dict(
        ledger().execute("SELECT n, median_rank(n) FROM range(500) r(n) WHERE n >= 6").fetchall()
    )
    for n, rank in ranks.items():
        outside = 2 * sum(math.comb(n, k) for k in range(rank)) / 2**n
        assert outside <= 0.053, n
    ((none,),) = ledger().execute("SELECT median_low([1.0, 2, 3, 4, 5])").fetchall()
    assert none is None


def test_wilson_is_the_textbook_interval() -> None:
    """Eight of ten: 0.49 to 0.94."""
    found = ledger().execute("SELECT wilson(8, 10, -1), wilson(8, 10, 1)").fetchall()
    assert found[0] == pytest.approx((0.4902, 0.9433), abs=1e-3)
