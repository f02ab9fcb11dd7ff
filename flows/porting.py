"""`kforge port`: its options, one line each, and the campaign that they mean."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from data.records import Policy, Strategy
from flows.options import RUNS, Json, Runs

if TYPE_CHECKING:
    from tasks.asked import Asked

Operators = Annotated[
    list[str] | None,
    Argument(metavar="[OPERATOR]...", help="Names or .py files; none means all."),
]
Devices = Annotated[list[str], Option(metavar="NAME", help="Repeat for several devices.")]
Suite = Annotated[
    str | None,
    Option(metavar="DIR|FILE", help="KernelBench checkout, or its Parquet or JSONL file."),
]
Start = Annotated[
    str | None, Option(metavar="FILE", help="A kernel to start from, in any language.")
]
Include = Annotated[
    str | None, Option(metavar="DIR", help="Auxiliary sources shown to the generator.")
]
Precision = Annotated[Policy, Option(help="Precision of the arithmetic.")]
Steps = Annotated[int, Option(min=1, max=200, help="Candidates a pair, at most.")]
Seed = Annotated[int, Option(help="Of the schedule search.")]
Epoch = Annotated[
    str, Option(metavar="NAME", help="The same name resumes, a new one starts afresh.")
]
Agents = Annotated[
    Literal["offline", "llm"], Option(help="Templates and rules, or a language model.")
]
Model = Annotated[str | None, Option(metavar="M", help="As litellm names it.")]
ApiBase = Annotated[str | None, Option(metavar="URL", help="An OpenAI-compatible endpoint.")]
CrewFile = Annotated[
    str | None,
    Option(metavar="F.toml", help="Fall-backs, effort, price, commands, guardrails, prompts."),
]
Calls = Annotated[int | None, Option(min=1, help="Requests to a model for a pair. [40]")]
Usd = Annotated[float | None, Option(min=0, help="Dollars for a pair, at most. [2.00]")]
CampaignUsd = Annotated[float | None, Option(min=0, help="Dollars for all pairs together.")]
Foreign = Annotated[
    str | None,
    Option("--reference", metavar="DEVICE", help="Show the best confirmed kernel of that device."),
]
How = Annotated[
    Strategy,
    Option(help="Two agents; or an arm to compare with: generator alone, samples, or a ladder."),
]
Compact = Annotated[
    bool, Option("--compact", help="Prompts of at most 1,500 tokens, for small models.")
]
Parallel = Annotated[
    int, Option(min=1, max=64, help="Pairs at a time; above 2 Prefect needs PostgreSQL.")
]
Hours = Annotated[
    float | None, Option(min=0, metavar="H", help="Of wall clock; then no new step begins.")
]
DeviceMinutes = Annotated[
    float | None, Option(min=0, metavar="M", help="Of checking and timing, all pairs together.")
]
Tokens = Annotated[
    int | None, Option(min=0, metavar="N", help="Of all prompts and replies together.")
]
Engine = Annotated[
    Literal["prefect", "local"], Option(help="Prefect flows, or this process alone.")
]

DryRun = Annotated[
    bool, Option("--dry-run", help="Print what a model would be asked next, and its worst cost.")
]


def port(  # noqa: PLR0913  (one parameter an option; `asked` reads them by name)
    operators: Operators = None,
    *,
    device: Devices,
    suite: Suite = None,
    start: Start = None,
    include: Include = None,
    contract: Precision = Policy.STRICT,
    steps: Steps = 8,
    seed: Seed = 0,
    epoch: Epoch = "default",
    agents: Agents = "offline",
    model: Model = None,
    api_base: ApiBase = None,
    crew: CrewFile = None,
    calls: Calls = None,
    usd: Usd = None,
    campaign_usd: CampaignUsd = None,
    reference: Foreign = None,
    strategy: How = Strategy.PAIR,
    compact: Compact = False,
    hours: Hours = None,
    device_minutes: DeviceMinutes = None,
    tokens: Tokens = None,
    parallel: Parallel = 2,
    engine: Engine = "prefect",
    dry_run: DryRun = False,
    runs: Runs = RUNS,
    json: Json = False,
) -> int:
    """Port operators to devices."""
    asked = _asked(locals())
    if dry_run:
        from flows.rehearsing import show_prompts  # noqa: PLC0415

        return show_prompts(asked, as_json=json)
    from flows.engine import port as run_campaign  # noqa: PLC0415

    return run_campaign(asked, engine, as_json=json)


def _asked(given: dict[str, Any]) -> "Asked":
    """The arguments by their names; three are spelled otherwise on the command line."""
    from tasks.asked import Asked  # noqa: PLC0415

    named = {f.name: given[f.name] for f in fields(Asked) if f.name in given}
    named |= {
        "operators": tuple(given["operators"] or ()),
        "devices": tuple(given["device"]),
        "policy": given["contract"].value,
        "runs": str(given["runs"]),
    }
    return Asked(**named)


def replay(  # noqa: PLR0913  (one parameter an option)
    recording: Annotated[
        Path, Argument(metavar="FILE.json", help="What kforge ledger record wrote.")
    ],
    operators: Annotated[
        list[str] | None, Argument(metavar="[OPERATOR]...", help="Names in it; none means all.")
    ] = None,
    *,
    device: Annotated[
        list[str] | None, Option(metavar="NAME", help="In it; repeat for several. None means all.")
    ] = None,
    engine: Engine = "prefect",
    runs: Runs = RUNS,
    json: Json = False,
) -> int:
    """Repeat a recorded campaign without a model: its replies, judged anew."""
    from flows.engine import carry_out  # noqa: PLC0415
    from tasks.recording import replayed  # noqa: PLC0415

    campaign = replayed(recording, str(runs), tuple(operators or ()), tuple(device or ()))
    return carry_out(campaign, engine, as_json=json)
