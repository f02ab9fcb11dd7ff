"""Rows: what every engine writes the same way."""

import asyncio

from data.records import Iteration
from data.store import Ledger


async def record(ledger: Ledger, iteration: Iteration) -> None:
    """Puts one step on record; LedgerError when the disk does not take it."""
    await asyncio.to_thread(ledger.append, iteration)  # it waits for the disk, twice a file
