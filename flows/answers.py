"""Commands that answer at once: a query, the devices, the server.

A query imports no target and no machine: that would be 0.4 s of its second.
"""

import csv
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from data.answers import json_lines, plain_values
from data.errors import MisuseError
from data.upkeep import require
from data.views import query, question

CELL = 60
"""Characters of a value in a table for people; --json and --csv have all."""
PAGE = 200
"""Rows of a table for people: a wide one of 100,000 takes a minute to lay out."""


def asked_sql(text: str | None, file: Path | None) -> str:
    """The SQL that is meant: a question's name stands for it. MisuseError when none is."""
    if (text is None) == (file is None):
        raise MisuseError("give either SQL (or the name of a question) or --file")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MisuseError(f"cannot read {file}: {error}; expected a file of SQL") from error
    assert text is not None
    return question(text) if text.isidentifier() else text


def print_answer(runs: Path, sql: str, form: str) -> None:
    """The answer to `sql` as `json`, `csv`, `table` or `page`, the first rows of a table.

    MisuseError when the SQL is at fault.
    """
    require(runs)
    answer = query(runs, sql)
    if form == "json":
        sys.stdout.writelines(f"{line}\n" for line in json_lines(answer))
    elif form == "csv":
        lines = csv.writer(sys.stdout, lineterminator="\n")
        lines.writerow(answer.column_names)
        lines.writerows([_flat(value) for value in row] for row in plain_values(answer))
    else:
        shown = answer.slice(0, PAGE) if form == "page" else answer
        print_table(answer.column_names, [list(row) for row in plain_values(shown)])
        if more := answer.num_rows - shown.num_rows:
            said = f"{more:,} more rows, {answer.num_rows:,} in all: --all prints them as a table"
            print(f"{said}, --csv and --json for programs", file=sys.stderr)


def print_report(runs: Path, out: Path, run: str | None) -> None:
    """Writes the page; its path on stdout, what it lacks on stderr."""
    from data.report.page import write  # noqa: PLC0415

    written = write(runs, out, run)
    for text in written.left_out:
        print(f"left out of the page: {text}", file=sys.stderr)
    print(written.path)


def print_devices(*, as_json: bool) -> None:
    """Each device with what it can do here; for people the reasons stand under the table."""
    from targets.machines import inventory  # noqa: PLC0415

    rows = [asdict(inventory.capabilities(d)) for d in inventory.devices().values()]
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(row.pop("why"), []).append(row["name"])
    print_table(list(rows[0]), [[_word(v) for v in row.values()] for row in rows])
    for why, names in reasons.items():
        if why:
            print(f"\n{', '.join(names)}:\n  {why}")


def print_server(runs: Path, *, as_json: bool) -> None:
    """Which server a campaign would talk to, and whether it answers."""
    from flows import server  # noqa: PLC0415
    from tasks import served  # noqa: PLC0415

    given = os.environ.get("PREFECT_API_URL")
    known = served.recorded(runs)
    url = server.public(given) if given else known.url if known else None
    ours = None if given else known
    running = bool(given and served.healthy(given)) or bool(
        ours and server.alive(ours) and served.healthy(ours.url)
    )
    state: dict[str, object] = {
        "running": running,
        "url": url,
        "started_here": ours is not None,
        "pid": ours.pid if ours else None,
        "port": ours.port if ours else None,
        "database": ours.database if ours else None,
        "log": ours.log if ours else None,
    }
    print(json.dumps(state) if as_json else _state(state))


def _state(state: dict[str, object]) -> str:
    if not state["url"]:
        return "no server runs; kforge port starts one"
    if not state["running"]:
        remedy = (
            "kforge port starts it" if state["started_here"] else "start it or unset the variable"
        )
        return f"no server answers at {state['url']}; {remedy}"
    if not state["started_here"]:
        return f"the server at PREFECT_API_URL={state['url']} answers"
    return f"running at {state['url']}: pid {state['pid']}, database {state['database']}"


def print_table(names: list[str], rows: list[list[object]]) -> None:
    """A table for people, on stdout."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=100_000)
        width = max(console.measure(table).maximum, 1)
        console = Console(highlight=False, markup=False, width=width)
    console.print(table)


def _cell(value: object) -> str:
    text = " ".join(_shown(value).split())
    return text if len(text) <= CELL else f"{text[: CELL - 3]}..."


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)


def _word(value: object) -> object:
    return ("yes" if value else "no") if isinstance(value, bool) else value


def _flat(value: object) -> object:
    """A value for a cell of CSV; lists and records as JSON."""
    return json.dumps(value) if isinstance(value, list | dict) else value
