"""`kforge port`: runs a composed campaign in Prefect or in this process, and says how it went."""

import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from data.errors import KForgeError
from data.files import ensure_writable
from flows import server
from tasks import served
from tasks.asked import Asked, compose
from tasks.campaign import Campaign, store_campaign
from tasks.progress import listening
from tasks.running import run_locally
from tasks.terminal import Terminal, print_results

INTERRUPTED = 130
CLIENT = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",  # the UI has the logs, stderr progress
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "flows,tasks,agents,targets,data,kforge",
    "PREFECT_CLIENT_MAX_RETRIES": "20",  # SQLite answers 503 when locked (PREFECT.md, section 2)
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
}


def port(asked: Asked, engine: str, *, as_json: bool) -> int:
    """Runs the campaign and prints its results; the exit code. KForgeError for a failed world."""
    return carry_out(compose(asked), engine, as_json=as_json)


def carry_out(campaign: Campaign, engine: str, *, as_json: bool) -> int:
    """The same for a campaign that has its run id."""
    ensure_writable(Path(campaign.runs))
    store_campaign(campaign)
    terminal = Terminal(total=len(campaign.operators) * len(campaign.devices))
    terminal.say(_announced(campaign, terminal.total))
    try:
        with terminal, listening(terminal):
            _run(campaign, engine, terminal)
    except KeyboardInterrupt:
        _print(terminal, as_json=as_json)
        terminal.say(
            f"interrupted: {terminal.new_steps} new steps are on record in {campaign.runs};"
            " the same command goes on where this one stopped"
        )
        return INTERRUPTED
    except KForgeError:
        _print(terminal, as_json=as_json)
        raise
    _print(terminal, as_json=as_json)
    if left := campaign.meter.left():
        terminal.say(left)
    return 0


def _announced(campaign: Campaign, pairs: int) -> str:
    """The first line: what is done, and whether a language model has a part in it."""
    what = f"campaign {campaign.run_id}, epoch {campaign.epoch}: {pairs} pairs"
    crew = campaign.crew
    if crew.keyless:
        return f"{what}; no LLM is used: templates and rules only"
    if crew.recording:
        return f"{what}; a replay of {', '.join(crew.models)}: nobody is asked, nothing is paid"
    place = f" at {crew.api_base}" if crew.api_base else ""
    said = [f"LLM: {', '.join(crew.models)}{place}"] if crew.models else []
    said += [f"a command is the {role}" for role in sorted(crew.commands)]
    return "; ".join([what, *said])


def _run(campaign: Campaign, engine: str, terminal: Terminal) -> None:
    if engine == "local":
        asyncio.run(run_locally(campaign))
        return
    runs = Path(campaign.runs)
    if "PREFECT_API_URL" not in os.environ:
        os.environ.setdefault("PREFECT_HOME", str(runs / ".prefect" / "home"))
    if "PREFECT_API_URL" not in os.environ:
        served.bears(server.database(runs), campaign.parallel)
    os.environ["PREFECT_API_URL"] = server.ensure(runs, say=terminal.say)
    for name, value in CLIENT.items():
        os.environ.setdefault(name, value)
    from prefect import tags  # noqa: PLC0415  (Prefect costs 1.1 s)

    from flows.port import port as campaign_flow  # noqa: PLC0415

    with tags("kforge", campaign.run_id):
        asyncio.run(campaign_flow(campaign.runs, campaign.run_id, campaign.epoch))


def _print(terminal: Terminal, *, as_json: bool) -> None:
    """The pairs that ended, on stdout, in the order of their names."""
    results = sorted(terminal.results, key=lambda r: (r.device, r.operator))
    if as_json:
        for result in results:
            print(json.dumps(asdict(result)))
    elif results:
        print_results(results)
    sys.stdout.flush()
