"""A campaign's parent that is retried and starts its pairs in another order the second time."""

import asyncio
import sys

from prefect import flow

from flows.port import start
from tasks.campaign import PairResult

ORDERS = [["a", "b"], ["b", "a"]]


@flow(name="retried", retries=1)
async def parent(runs: str, run_id: str) -> dict[str, str]:
    """The operator of the result that each pair got."""
    order = ORDERS.pop(0)
    results: list[PairResult] = await asyncio.gather(
        *(start(runs, run_id, o, "cpu") for o in order)
    )
    if ORDERS:
        raise RuntimeError("once more")
    return {o: r.operator for o, r in zip(order, results, strict=True)}


if __name__ == "__main__":
    print(asyncio.run(parent(sys.argv[1], sys.argv[2])))
