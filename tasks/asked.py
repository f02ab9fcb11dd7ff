"""What a person asks for by names and numbers, and the campaign that it means."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agents.budget import PAIR_CALLS, PAIR_USD
from data import mirror
from data.errors import MachineError, MisuseError
from data.guardrails import Guardrails
from data.operator import find
from data.records import Contract, LibraryPolicy, Policy, Settings, ShapePolicy, Strategy
from targets.machines import inventory
from tasks import devices
from tasks.campaign import Campaign, identify
from tasks.crew import Crew, CrewFile, read_crew
from tasks.limits import Limits
from tasks.remembering import remembered
from tasks.served import PARALLEL

AGENTS = ("offline", "llm")
MOST_STEPS = 200
MOST_PARALLEL = 64
"""Pairs at a time; beyond, the files and connections of one controller are the limit."""
INCLUDE_BYTES = 1_000_000
"""Auxiliary sources go into prompts and rows: more is surely the wrong folder."""
EPOCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}")

Word = TypeVar("Word", Policy, LibraryPolicy, ShapePolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The arguments of `kforge port`."""

    operators: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("cpu",)
    suite: str | None = None
    start: str | None = None
    include: str | None = None
    policy: str = Policy.STRICT.value
    steps: int = 8
    seed: int = 0
    epoch: str = "default"
    agents: str = "offline"
    model: str | None = None
    api_base: str | None = None
    parallel: int = PARALLEL
    hours: float | None = None
    device_minutes: float | None = None
    tokens: int | None = None
    crew: str | None = None
    """File with the rest of what the agents are told: `tasks/crew.py`."""
    calls: int | None = None
    usd: float | None = None
    campaign_usd: float | None = None
    reference: str | None = None
    strategy: Strategy = Strategy.PAIR
    compact: bool = False
    runs: str = "runs"


def compose(asked: Asked) -> Campaign:
    """The campaign with its run id; MisuseError (or OperatorError) says what cannot be meant."""
    _check(asked)
    file = read_crew(Path(asked.crew)) if asked.crew else CrewFile()
    chosen = devices.find(asked.devices)
    if asked.reference:
        devices.find((asked.reference,))
    operators = find(asked.operators, Path(asked.suite) if asked.suite else None)
    campaign = Campaign(
        run_id="",
        epoch=asked.epoch,
        runs=str(mirror.folder(asked.runs).absolute()),
        operators=operators,
        devices=chosen,
        contract=Contract(policy=word(Policy, "contract", asked.policy)),
        settings=_settings(asked, file.rails()),
        crew=file.complete(_crew(asked), Path(asked.crew or ".").parent),
        parallel=asked.parallel,
        limits=Limits(hours=asked.hours, device_minutes=asked.device_minutes, tokens=asked.tokens),
    )
    compilable(campaign)
    return remembered(identify(campaign))


def compilable(campaign: Campaign) -> None:
    """MachineError, before anything starts, when nothing here can compile for a device."""
    for device in campaign.devices:
        report = inventory.capabilities(device)
        if not (report.compile or report.execute):
            raise MachineError(f"nothing can be built for {device.name!r}: {report.why}")


def word(kind: type[Word], option: str, text: str) -> Word:
    """The member of a closed set that `text` names; MisuseError lists the others."""
    try:
        return kind(text)
    except ValueError:
        known = ", ".join(k.value for k in kind)
        raise MisuseError(f"--{option} is {text!r}; expected one of {known}") from None


def _check(asked: Asked) -> None:
    if asked.agents not in AGENTS:
        raise MisuseError(f"--agents is {asked.agents!r}; expected offline or llm")
    if asked.agents == "llm" and not asked.model:
        raise MisuseError("--agents llm needs --model, such as openai/gpt-5 or openai/local")
    if asked.agents == "offline" and (asked.model or asked.api_base):
        raise MisuseError("--model and --api-base need --agents llm")
    if not 1 <= asked.steps <= MOST_STEPS:
        raise MisuseError(f"--steps is {asked.steps}; expected 1 to {MOST_STEPS}")
    if not 1 <= asked.parallel <= MOST_PARALLEL:
        raise MisuseError(f"--parallel is {asked.parallel}; expected 1 to {MOST_PARALLEL}")
    if not EPOCH.fullmatch(asked.epoch):
        raise MisuseError(
            f"--epoch is {asked.epoch!r}; expected up to 64 letters, digits and . _ : + -"
        )


def _crew(asked: Asked) -> Crew:
    return Crew(
        kind=asked.agents,
        models=(asked.model,) if asked.model else (),
        api_base=asked.api_base,
        calls=PAIR_CALLS if asked.calls is None else asked.calls,
        usd=PAIR_USD if asked.usd is None else asked.usd,
        campaign_usd=asked.campaign_usd,
    )


def _settings(asked: Asked, rails: Guardrails) -> Settings:
    return Settings(
        steps=asked.steps,
        seed=asked.seed,
        start=_text(Path(asked.start), "--start") if asked.start else None,
        include=_sources(Path(asked.include)) if asked.include else {},
        guardrails=rails,
        reference=asked.reference,
        strategy=asked.strategy,
        compact=asked.compact,
        calls=PAIR_CALLS if asked.calls is None else asked.calls,
    )


def _text(path: Path, option: str) -> str:
    try:
        text = path.read_text()
    except OSError as error:
        raise MisuseError(f"{option} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise MisuseError(f"{option} {path} is not text; expected a kernel's source") from None
    if not text.strip():
        raise MisuseError(f"{option} {path} is empty; expected a kernel's source")
    return text


def _sources(folder: Path) -> dict[str, str]:
    """Relative name to text of every file below the folder, hidden ones left out."""
    if not folder.is_dir():
        raise MisuseError(f"--include {folder} is not a folder")
    files = [f for f in sorted(folder.rglob("*")) if f.is_file() and not _hidden(f, folder)]
    size = sum(f.stat().st_size for f in files)
    if not files or size > INCLUDE_BYTES:
        raise MisuseError(
            f"--include {folder} holds {len(files)} files of {size} bytes;"
            f" expected some sources of at most {INCLUDE_BYTES} bytes in all"
        )
    return {str(f.relative_to(folder)): _text(f, "--include") for f in files}


def _hidden(file: Path, folder: Path) -> bool:
    return any(p.startswith((".", "__")) for p in file.relative_to(folder).parts)
