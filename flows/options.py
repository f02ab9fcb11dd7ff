"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

from typer import Option


def ledger_folder(text: str | Path) -> Path:
    """The folder that `--runs` means, also for `s3://BUCKET/PREFIX`."""
    if not str(text).startswith("s3://"):
        return Path(text)
    from data.mirror import folder  # noqa: PLC0415  (Arrow costs 0.2 s)

    return folder(str(text))


Runs = Annotated[
    Path,
    Option(
        "--runs",
        metavar="DIR",
        parser=ledger_folder,
        help="Folder of the ledger, or s3://BUCKET/PREFIX.",
    ),
]
Json = Annotated[bool, Option("--json", help="One JSON object a line.")]
RUNS = Path("runs")
