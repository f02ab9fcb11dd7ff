"""A campaign that may cost twenty dollars, by the flow of a deployment; nobody is asked a thing.

`python -m tests.flows.costly RUNS ABOVE`
"""

import asyncio
import sys
from unittest.mock import patch

from flows import deployed
from tasks import approval
from tasks.campaign import Campaign, PairResult


async def spend(_: Campaign) -> list[PairResult]:
    """Where the money would go."""
    print("spends", flush=True)
    return []


if __name__ == "__main__":
    with patch.object(approval, "POLL_S", 1), patch.object(deployed, "ported", spend):
        asyncio.run(
            deployed.port_operators(
                operators=["relu", "softmax"],
                devices=["cpu"],
                agents="llm",
                model="openai/nobody",
                epoch="costly",
                approve_above_usd=float(sys.argv[2]),
                runs=sys.argv[1],
            )
        )
