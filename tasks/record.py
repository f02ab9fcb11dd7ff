"""Time stamps and rows: what every engine writes the same way."""

from datetime import UTC, datetime

from data.records import Iteration
from data.store import Ledger


def now() -> str:
    """The time as rows hold it: UTC, microseconds, sortable as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


async def record(ledger: Ledger, iteration: Iteration) -> None:
    """Puts one step on record; LedgerError when the disk does not take it."""
    ledger.append(iteration)
