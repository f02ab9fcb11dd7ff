"""`kforge`: what a person types. Results on stdout, progress and errors on stderr.

Every command imports what it needs when it runs, so that help and queries start at once.
"""

import io
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from data.errors import KForgeError, MisuseError
from data.records import LibraryPolicy, Policy, ShapePolicy
from flows import operation
from flows.options import RUNS, Json, Runs
from flows.porting import port, replay

app = typer.Typer(
    name="kforge",
    help="Ports PyTorch operators to accelerators and judges what is right and how fast it is.",
    add_completion=False,
    rich_markup_mode=None,
)
servers = typer.Typer(help="The Prefect server of a ledger folder.", rich_markup_mode=None)
app.add_typer(servers, name="server")
spools = typer.Typer(help="Jobs for machines that cannot be reached.", rich_markup_mode=None)
app.add_typer(spools, name="spool")
app.command()(port)
app.command()(replay)


operators = typer.Typer(help="Operator files.", rich_markup_mode=None)
app.add_typer(operators, name="operators")
ledgers = typer.Typer(help="The files of a ledger.", rich_markup_mode=None)
app.add_typer(ledgers, name="ledger")


@app.callback()
def options(
    *, debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False
) -> None:
    """Options of all commands; `--debug` may stand anywhere and is read by `run`."""


@app.command()
def judge(  # noqa: PLR0913  (one parameter an option)
    candidates: Annotated[
        list[str] | None, Argument(metavar="[CANDIDATE.py]...", help="Files in ModelNew form.")
    ] = None,
    *,
    operator: Annotated[
        str | None, Option(metavar="FILE_OR_NAME", help="What they all are judged against.")
    ] = None,
    pairs: Annotated[
        Path | None, Option(metavar="FILE.jsonl", help="{candidate, operator} a line, instead.")
    ] = None,
    device: Annotated[str, Option(metavar="NAME")] = "cpu",
    contract: Annotated[Policy, Option(help="Precision of the arithmetic.")] = Policy.STRICT,
    library: Annotated[
        LibraryPolicy, Option(help="Library compute beside own kernels.")
    ] = LibraryPolicy.FLAGGED,
    shapes: Annotated[
        ShapePolicy, Option(help="Whether a kernel may be made for the given shapes only.")
    ] = ShapePolicy.FIXED,
    time: Annotated[bool, Option("--time/--no-time", help="Whether speed is measured.")] = True,
    deadline: Annotated[
        float, Option(metavar="S", min=1, max=7200, help="Seconds for one candidate.")
    ] = 120.0,
    runs: Runs = RUNS,
    json: Json = False,
) -> int:
    """Judge given kernels.

    Exit code 0: all are accepted; 3: one is rejected or not admitted; 4: one is undecided.
    """
    from data.records import Contract  # noqa: PLC0415
    from flows.judging import judge_all  # noqa: PLC0415
    from tasks.judgement import Terms  # noqa: PLC0415
    from tasks.subjects import subjects  # noqa: PLC0415

    terms = Terms(
        device=device,
        contract=Contract(policy=contract, library=library, shapes=shapes),
        timed=time,
        deadline_s=deadline,
    )
    given = subjects(tuple(candidates or ()), operator, pairs)
    return judge_all(given, terms, runs, as_json=json or not sys.stdout.isatty())


@app.command()
def admit(  # noqa: PLR0913  (one parameter an option)
    operators: Annotated[
        list[str] | None,
        Argument(
            metavar="[OPERATOR|SUITE]...",
            help="Names, .py files, folders, .parquet or .jsonl files; none means all of ours.",
        ),
    ] = None,
    *,
    device: Annotated[str, Option(metavar="NAME")] = "cpu",
    contract: Annotated[Policy, Option(help="Precision of the arithmetic.")] = Policy.STRICT,
    time: Annotated[
        bool, Option("--time/--no-time", help="Whether the baseline is set against its floor.")
    ] = True,
    runs: Runs = RUNS,
    json: Json = False,
) -> int:
    """Say which operators can tell right from wrong, and how well.

    Exit code 0: all are admitted; 1: one is not.
    """
    from data.records import Contract  # noqa: PLC0415
    from flows.admitting import admit_all  # noqa: PLC0415
    from tasks.admission import Terms, asked  # noqa: PLC0415
    from tasks.devices import find  # noqa: PLC0415

    (found,) = find((device,))
    terms = Terms(device=found, contract=Contract(policy=contract), timed=time)
    return admit_all(asked(operators or ()), terms, runs, as_json=json)


@app.command()
def query(  # noqa: PLR0913  (one parameter an option)
    sql: Annotated[
        str | None,
        Argument(metavar="[NAME|SQL]", help="A question of docs/ledger.md, or SQL over the views."),
    ] = None,
    *,
    file: Annotated[Path | None, Option(metavar="F.sql", help="SQL from a file instead.")] = None,
    runs: Runs = RUNS,
    json: Json = False,
    csv: Annotated[bool, Option("--csv", help="Comma-separated values.")] = False,
    whole: Annotated[bool, Option("--all", help="All rows of a table, not the first 200.")] = False,
) -> None:
    """Ask the ledger."""
    from flows.answers import asked_sql, print_answer  # noqa: PLC0415

    if json and csv:
        raise MisuseError("--json and --csv exclude each other")
    table = "table" if whole else "page"
    print_answer(runs, asked_sql(sql, file), "json" if json else "csv" if csv else table)


@app.command()
def show(
    pair: Annotated[str, Argument(metavar="PAIR", help="Such as softmax@cpu.")],
    *,
    run: Annotated[str | None, Option(metavar="RUN_ID", help="Instead of the latest run.")] = None,
    runs: Runs = RUNS,
    json: Json = False,
) -> None:
    """Tell the story of a pair, step by step."""
    from flows.show import show as tell  # noqa: PLC0415

    tell(runs, pair, run, as_json=json)


@app.command()
def report(
    *,
    run: Annotated[
        str | None,
        Option(metavar="RUN_ID", help="One run alone; `last` is the latest. None means all."),
    ] = None,
    out: Annotated[Path, Option("--out", "-o", metavar="FILE", help="Where the page goes.")] = Path(
        "kforge-report.html"
    ),
    runs: Runs = RUNS,
) -> None:
    """Write one HTML page of the ledger that opens offline."""
    from flows.answers import print_report  # noqa: PLC0415

    print_report(runs, out, run)


@app.command()
def devices(*, json: Json = False) -> None:
    """List the devices and what each can do here."""
    from flows.answers import print_devices  # noqa: PLC0415

    print_devices(as_json=json)


@app.command()
def doctor(*, runs: Runs = RUNS, json: Json = False) -> int:
    """Check this machine: PASS or FAIL, and what to do."""
    from flows.doctor import examine  # noqa: PLC0415

    return examine(runs, as_json=json)


@app.command()
def onboard(
    device: Annotated[str, Argument(metavar="DEVICE", help="A name that kforge devices lists.")],
    *,
    runs: Runs = RUNS,
    json: Json = False,
) -> int:
    """Check a new device and its target: contract, example, cases, card, known kernel."""
    from flows.newcomers import welcome  # noqa: PLC0415

    return welcome(device, runs, as_json=json)


@app.command()
def reap(
    machines: Annotated[
        list[str] | None, Argument(metavar="[MACHINE]...", help="None means all.")
    ] = None,
    *,
    days: Annotated[
        float, Option(metavar="N", min=0, help="Code and caches unused for so long go.")
    ] = 7.0,
    json: Json = False,
) -> int:
    """Clear up here and on other machines: idle residents, lost jobs, old caches."""
    from flows.reaping import clear  # noqa: PLC0415

    return clear(tuple(machines or ()), days, as_json=json)


app.command()(operation.bootstrap)
app.command()(operation.requalify)
app.command()(operation.export)


@servers.command()
def status(*, runs: Runs = RUNS, json: Json = False) -> None:
    """Say whether a server runs, and where."""
    from flows.answers import print_server  # noqa: PLC0415

    print_server(runs, as_json=json)


@servers.command()
def stop(*, runs: Runs = RUNS) -> None:
    """End the server that a campaign started."""
    from flows import server  # noqa: PLC0415

    ended = server.stop(runs)
    print(f"stopped the server at {ended.page} (pid {ended.pid})" if ended else "no server runs")


@spools.command("pack")
def pack_spool(
    folder: Annotated[Path, Argument(metavar="DIR", help="The spool of a machine.")],
    out: Annotated[Path, Argument(metavar="OUT.tar", help="What to carry there.")],
    *,
    bubblewrap: Annotated[
        bool, Option("--bubblewrap", help="With the sandbox program of this machine.")
    ] = False,
) -> None:
    """Pack what another machine needs for the jobs that are left."""
    from flows import spooling  # noqa: PLC0415

    spooling.pack(folder, out, bubblewrap=bubblewrap)


@spools.command("unpack")
def unpack_spool(
    results: Annotated[Path, Argument(metavar="RESULTS.tar", help="What came back.")],
    *,
    into: Annotated[
        Path | None, Option(metavar="DIR", help="The spool, where devices.toml names none.")
    ] = None,
    runs: Runs = RUNS,
) -> None:
    """Take results back into spool and ledger."""
    from flows import spooling  # noqa: PLC0415

    spooling.unpack(results, into, runs)


@spools.command("status")
def spool_status(
    folder: Annotated[Path, Argument(metavar="DIR", help="The spool of a machine.")],
    *,
    json: Json = False,
) -> None:
    """Say how far the jobs of a spool are."""
    from flows import spooling  # noqa: PLC0415

    spooling.status(folder, as_json=json)


@operators.command("from-model")
def operators_of_model(
    model: Annotated[
        Path, Argument(metavar="FILE.py", help="Model, get_inputs and get_init_inputs.")
    ],
    folder: Annotated[Path, Argument(metavar="DIR", help="A new folder for the operator files.")],
    *,
    top: Annotated[int, Option(metavar="N", min=1, help="Files at most.")] = 20,
    json: Json = False,
) -> None:
    """Profile a model on this processor and write the operators that take longest as files."""
    from flows.modelling import from_model  # noqa: PLC0415

    from_model(model, folder, top, as_json=json)


@ledgers.command("check")
def check_ledger(*, runs: Runs = RUNS, json: Json = False) -> int:
    """Read every file; exit code 1 when one had to be set aside, now or before."""
    from flows import upkeep  # noqa: PLC0415

    return upkeep.check(runs, as_json=json)


@ledgers.command("compact")
def compact_ledger(*, runs: Runs = RUNS) -> None:
    """Put the files of all pairs into a few large ones."""
    from flows import upkeep  # noqa: PLC0415

    upkeep.compact(runs)


@ledgers.command("merge")
def merge_ledger(
    other: Annotated[Path, Argument(metavar="DIR", help="The ledger to take in.")],
    *,
    runs: Runs = RUNS,
) -> int:
    """Take another ledger in; exit code 1 when a file of it is none."""
    from flows import upkeep  # noqa: PLC0415

    return upkeep.merge(runs, other)


@ledgers.command("import")
def import_into_ledger(
    folder: Annotated[
        Path, Argument(metavar="DIR", help="A KernelBench run, several, or another ledger.")
    ],
    *,
    suite: Annotated[
        Path | None,
        Option(metavar="PATH", help="The KernelBench checkout, for the operators' names."),
    ] = None,
    runs: Runs = RUNS,
) -> int:
    """Take results of other judges in; they stand apart from what was judged here."""
    from flows import upkeep  # noqa: PLC0415

    return upkeep.import_from(runs, folder, suite)


@ledgers.command("record")
def record_run(
    run: Annotated[str, Argument(metavar="RUN_ID", help="As kforge query taken lists them.")],
    out: Annotated[Path, Argument(metavar="OUT.json", help="For kforge replay.")],
    *,
    runs: Runs = RUNS,
) -> None:
    """Write what the models of a run were asked and said, to be replayed without them."""
    from flows import upkeep  # noqa: PLC0415

    upkeep.record(runs, run, out)


@ledgers.command("attach")
def attach_ledger(
    out: Annotated[Path, Argument(metavar="OUT.duckdb", help="For any SQL tool or notebook.")],
    *,
    runs: Runs = RUNS,
) -> None:
    """Write a small DuckDB file with all views and questions, which reads the ledger in place."""
    from flows import upkeep  # noqa: PLC0415

    upkeep.attach(runs, out)


@ledgers.command("export")
def export_ledger(
    out: Annotated[Path, Argument(metavar="OUT.duckdb", help="For any SQL tool.")],
    *,
    runs: Runs = RUNS,
) -> None:
    """Write a DuckDB file with all rows, views and questions."""
    from flows import upkeep  # noqa: PLC0415

    upkeep.export(runs, out)


def main() -> None:
    """The entry point of the console script."""
    # A shell starts its background jobs with the signal ignored; a campaign must stay stoppable.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a model's reply may hold what cannot be encoded
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code of a command: 0 done, 1 failed, 2 misuse, 130 interrupted."""
    debug = "--debug" in arguments
    words = [a for a in arguments if a != "--debug"]
    try:
        code = app(args=words or ["--help"], prog_name="kforge", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", 130, debug=debug)
    except (typer.TyperException, MisuseError) as error:
        text = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        text = text.replace("Value error, ", "").rstrip(".")
        return _fail(f"{text} (see kforge {_verb(words)}--help)", 2, debug=debug)
    except KForgeError as error:
        return _fail(str(error), 1, debug=debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # no second fault at exit
        return 1
    except Exception as error:  # noqa: BLE001  (the process edge)
        what = f"{type(error).__name__}: {error}"
        return _fail(f"a fault of kforge itself: {what} (--debug shows where)", 1, debug=debug)
    if not words:
        return 2  # help was shown, nothing was asked
    return code if isinstance(code, int) else 0


def _verb(words: list[str]) -> str:
    known = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    return (
        f"{words[0]} "
        if words and words[0] in {*known, "ledger", "operators", "server", "spool"}
        else ""
    )


def _fail(text: str, code: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"kforge: {' '.join(text.split())}", file=sys.stderr)
    return code
