"""Ledgers of made-up rows, for tests of scale and of failure: marked, and kept apart."""

from pathlib import Path

from data.errors import LedgerError
from data.records import Iteration

MARK = "SIMULATED"
SAID = "Every row here is made up: a simulated device, for tests. No number is a measurement.\n"


def mark(root: Path) -> None:
    """Makes the folder a ledger of made-up rows, once and for all."""
    root.mkdir(parents=True, exist_ok=True)
    (root / MARK).write_text(SAID)


def marked(root: Path) -> bool:
    return (root / MARK).exists()


def check(root: Path, iteration: Iteration) -> None:
    """LedgerError for a made-up row in a true ledger, and for a true one among made-up rows."""
    made_up = iteration.device.execution == "simulated"
    if made_up and not marked(root):
        raise LedgerError(
            f"{iteration.device.name} is simulated and {root} is a ledger of measurements; made-up"
            f" rows go into a folder of their own that holds the file {MARK}"
        )
    if not made_up and marked(root):
        raise LedgerError(
            f"{root} holds made-up rows only (file {MARK}); choose another --runs for"
            f" {iteration.device.name}"
        )


def same_kind(root: Path, other: Path) -> None:
    """LedgerError when one of two ledgers is made up and the other is not."""
    if marked(root) != marked(other):
        raise LedgerError(f"of {root} and {other} one holds made-up rows (file {MARK}); not merged")
