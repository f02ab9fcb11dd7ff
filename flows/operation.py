"""The commands of those who run KForge for months; `flows/cli.py` makes them verbs."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from data.records import Policy
from flows.options import RUNS, Json, Runs


def bootstrap(*, runs: Runs = RUNS, json: Json = False) -> None:
    """Create pools, queues, limits and automations on the Prefect server; twice changes nothing."""
    from flows.bootstrap import prepare  # noqa: PLC0415  (Prefect costs 1.1 s)

    prepare(runs, as_json=json)


def requalify(  # noqa: PLR0913  (one parameter an option)
    operators: Annotated[
        list[str] | None, Argument(metavar="[OPERATOR]...", help="None means all.")
    ] = None,
    *,
    device: Annotated[
        list[str] | None, Option(metavar="NAME", help="Repeat for several; none means all.")
    ] = None,
    every: Annotated[
        bool, Option("--all", help="Also kernels whose environment has not changed.")
    ] = False,
    epoch: Annotated[
        str | None, Option(metavar="NAME", help="What was looked at in it is not again; the date.")
    ] = None,
    runs: Runs = RUNS,
    json: Json = False,
) -> int:
    """Verify and time accepted kernels again where driver, compiler, torch or card changed.

    Exit code 1: a kernel is wrong or slower now, or could not be looked at.
    """
    from flows.requalify import look_again  # noqa: PLC0415
    from tasks.requalify import Terms, today  # noqa: PLC0415

    terms = Terms(
        runs=runs,
        operators=tuple(operators or ()),
        devices=tuple(device or ()),
        every=every,
        epoch=epoch or today(),
    )
    return look_again(terms, as_json=json)


def export(  # noqa: PLR0913  (one parameter an option)
    folder: Annotated[Path, Argument(metavar="DIR", help="A new folder; the package's name.")],
    *,
    device: Annotated[list[str], Option(metavar="NAME", help="Repeat for several.")],
    operator: Annotated[
        list[str] | None, Option(metavar="NAME", help="Repeat for several; none means all.")
    ] = None,
    contract: Annotated[Policy, Option(help="Precision of the arithmetic.")] = Policy.STRICT,
    unreviewed: Annotated[
        bool, Option("--unreviewed", help="Also kernels that need review.")
    ] = False,
    runs: Runs = RUNS,
    json: Json = False,
) -> None:
    """Write confirmed kernels as a Python package that needs torch alone."""
    from flows.exporting import export as write  # noqa: PLC0415
    from tasks.export.chosen import Terms  # noqa: PLC0415

    terms = Terms(
        runs=runs,
        devices=tuple(device),
        operators=tuple(operator or ()),
        policy=contract,
        unreviewed=unreviewed,
    )
    write(terms, folder, as_json=json)
