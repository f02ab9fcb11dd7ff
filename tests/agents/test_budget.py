"""Reservation before the call, so that parallel pairs cannot overshoot together."""

import threading

import pytest

from agents.budget import Budget, Spent
from agents.price import Price, cost_usd, listed, worst_usd
from data.errors import BudgetError


def test_calls_in_flight_count() -> None:
    """A reservation that is not settled holds its worst case."""
    budget = Budget(calls=None, usd=1.0)
    hold = budget.reserve(0.6)
    with pytest.raises(BudgetError, match=r"0\.6000 USD, 0\.4000 of 1\.00"):
        budget.reserve(0.6)
    hold.settle(0.1)
    budget.reserve(0.6)
    assert budget.spent.calls == 2
    assert budget.spent.usd == pytest.approx(0.7)


def test_parallel_pairs_share_the_run() -> None:
    """Of 64 threads that want a call, exactly as many get one as the run allows."""
    run = Budget(calls=10, usd=None)
    pairs = [Budget(calls=40, usd=2.0, within=run) for _ in range(8)]
    granted: list[int] = []
    start = threading.Barrier(64)

    def want(index: int) -> None:
        start.wait()
        try:
            pairs[index % 8].reserve(0.01)
        except BudgetError:
            return
        granted.append(index)

    threads = [threading.Thread(target=want, args=(i,)) for i in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 10
    assert sum(p.spent.calls for p in pairs) == 10


def test_a_refusal_takes_nothing() -> None:
    """When the run refuses, the pair's own count is as before."""
    pair = Budget(calls=5, usd=5.0, within=Budget(calls=5, usd=0.1))
    with pytest.raises(BudgetError):
        pair.reserve(1.0)
    assert pair.spent == Spent(calls=0, usd=0.0)


def test_an_unknown_cost_stays_at_its_worst_case() -> None:
    """A call that timed out may have been billed."""
    budget = Budget(calls=None, usd=1.0)
    budget.reserve(0.9).settle(None)
    with pytest.raises(BudgetError):
        budget.reserve(0.2)


USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 800},
}


def test_cached_tokens_have_their_own_price() -> None:
    """200 new, 800 cached and 100 written tokens at 3, 0.3 and 15 dollars a million."""
    price = Price(input=3e-6, output=15e-6, cached=0.3e-6)
    assert cost_usd(price, USAGE) == pytest.approx(200 * 3e-6 + 800 * 0.3e-6 + 100 * 15e-6)
    assert cost_usd(Price(input=3e-6, output=15e-6), USAGE) == pytest.approx(4.5e-3)


def test_the_list_price_is_found_with_and_without_the_provider() -> None:
    """As in litellm's table, which spells most names bare."""
    table = {"gpt": {"input_cost_per_token": 1.0, "output_cost_per_token": 2.0}}
    assert listed(table, "openai/gpt") == listed(table, "gpt") == Price(input=1.0, output=2.0)


def test_unknown_is_none() -> None:
    """Neither a missing price nor a missing usage is a cost of zero."""
    assert cost_usd(None, USAGE) is None
    assert cost_usd(Price(input=1.0, output=1.0), {}) is None
    assert listed({"gpt": {"input_cost_per_token": 1.0}}, "openai/other") is None
    assert worst_usd(None, [], 10) is None


def test_the_worst_case_is_an_upper_bound() -> None:
    """Even at a token for every two bytes nothing above the reservation is spent."""
    price = Price(input=1e-6, output=2e-6, cached=1e-7)
    text = "int main() { return 0; }" * 100
    worst = worst_usd(price, [{"role": "user", "content": text}], 500)
    real = cost_usd(price, {"prompt_tokens": len(text) // 2, "completion_tokens": 500})
    assert worst is not None
    assert real is not None
    assert real <= worst
