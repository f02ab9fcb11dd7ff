"""Fields of a deployment's form: closed sets that the UI offers as menus, numbers with bounds.

The sets are those of the machine that deploys: a device that is new in `devices.toml` is in the
form after the next `prefect deploy`.
"""

import inspect
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from pydantic import Field, WithJsonSchema

from data.operator import built_in
from targets.machines import inventory
from tasks.asked import MOST_PARALLEL, MOST_STEPS

F = TypeVar("F", bound=Callable[..., object])

SAID = {
    "devices": "As `kforge devices` lists them.",
    "device": "As `kforge devices` lists them.",
    "operators": "Of ours; a suite has a deployment of its own.",
    "operator": "Of ours; a suite has a deployment of its own.",
    "suite": "On the worker's machine: a KernelBench checkout, a folder of operators, a .parquet or"
    " .jsonl file. Empty means ours.",
    "steps": "Candidates a pair, at most.",
    "contract": "Precision of the arithmetic.",
    "agents": "Templates and rules (offline), or a language model (llm).",
    "model": "As litellm names it, for the agents `llm`.",
    "api_base": "An OpenAI-compatible endpoint, for the agents `llm`; its key is in the worker's"
    " environment.",
    "epoch": "`night` goes on with the latest night that was cut, else starts today's; `date` is"
    " today in UTC; any other name is taken as it is. The same epoch resumes.",
    "hours": "Of wall clock; then no new step begins, and the next night goes on.",
    "device_minutes": "Of checking and timing, all pairs together.",
    "tokens": "Of all prompts and replies together.",
    "campaign_usd": "Dollars for all calls together; binds where a price is known.",
    "approve_above_usd": "Dollars; a campaign that may cost more waits, Paused, until somebody"
    " resumes its run and approves.",
    "parallel": "Pairs at a time; more than 2 needs a Prefect server on PostgreSQL.",
    "runs": "Folder of the ledger on the worker's machine, or s3://BUCKET/PREFIX.",
    "out": "The page, on the worker's machine.",
    "folder": "New, on the worker's machine; its name is the package's. Written after Resume.",
    "kernels": "Names of operators, as on record; empty means all that are confirmed.",
    "unreviewed": "Also kernels that need review.",
    "every": "Also kernels whose driver, compiler, torch and card are the same.",
}
"""What a form says under its fields."""


def _menu(title: str, names: list[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "title": title, "enum": names})


Device = Annotated[str, _menu("Device", list(inventory.devices()))]
Operator = Annotated[str, _menu("Operator", [o.name for o in built_in()])]
Devices = Annotated[list[Device], Field(min_length=1)]
Operators = Annotated[list[Operator], Field(min_length=1)]
Agents = Literal["offline", "llm"]
Steps = Annotated[int, Field(ge=1, le=MOST_STEPS)]
Amount = Annotated[float, Field(ge=0)] | None
Tokens = Annotated[int, Field(ge=0)] | None
ApiBase = Annotated[str, Field(pattern="^[^@]*$")] | None
"""Without user and password: parameters are shown to everyone."""
Parallel = Annotated[int, Field(ge=1, le=MOST_PARALLEL)]


def form(function: F) -> F:
    """The function with a line on each parameter in its docstring, where Prefect looks for it."""
    names = inspect.signature(function).parameters
    lines = "".join(f"\n    {name}: {SAID[name]}" for name in names)
    function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nArgs:{lines}"
    return function
