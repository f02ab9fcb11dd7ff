"""A campaign: operators x devices under one contract, and how one of its pairs is ported."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path

from agents import loop
from agents.loop import Iterate, Stages
from agents.strategy import next_move
from data.codec import dumps, loads
from data.errors import LedgerError
from data.memory import Memory
from data.records import (
    Admission,
    Brief,
    Contract,
    Device,
    Iteration,
    Mode,
    Move,
    Operator,
    Pair,
    Settings,
    digest,
)
from data.store import Ledger
from targets import TARGETS
from targets.machines.spool import SpoolMachine
from tasks import spooled
from tasks.claim import claimed
from tasks.crew import Crew
from tasks.environment import environment, version_of_the_method
from tasks.generate import agents_for
from tasks.limits import Limits, Meter, meter
from tasks.machines import machine_for
from tasks.placing import somewhere
from tasks.record import record
from tasks.replay import replay_of
from tasks.served import PARALLEL
from tasks.stages import stages_for

OnStep = Callable[[Iteration], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What one `kforge port` does; plain data, so that a flow can read it from a file."""

    run_id: str
    epoch: str
    runs: str
    """Folder of the ledger."""
    operators: tuple[Operator, ...]
    devices: tuple[Device, ...]
    contract: Contract
    settings: Settings
    crew: Crew
    memory: Memory = field(default_factory=Memory)
    """Of earlier campaigns; no part of the identity, else a resumed run would be another."""
    parallel: int = PARALLEL
    """Pairs at a time; as the limits no part of the identity: no number depends on it."""
    limits: Limits = field(default_factory=Limits)

    @property
    def meter(self) -> Meter:
        """What it has taken, one for all its pairs in this process."""
        return meter(Path(self.runs), self.run_id, self.limits)

    @property
    def worst_usd(self) -> float:
        """What its model calls may cost in all: every pair's own limit, or the campaign's."""
        if self.crew.kind != "llm":
            return 0.0
        each = len(self.operators) * len(self.devices) * self.crew.usd
        return each if self.crew.campaign_usd is None else min(each, self.crew.campaign_usd)

    def pairs(self) -> tuple[Pair, ...]:
        """Every operator on every device."""
        briefs = {d.name: TARGETS[d.target].brief(d) for d in self.devices}
        return tuple(
            self._pair(operator, device, briefs[device.name])
            for device in self.devices
            for operator in self.operators
        )

    def named(self, operator: str, device: str) -> Pair:
        """The pair of those names; StopIteration if the campaign has none."""
        found = next(o for o in self.operators if o.name == operator)
        place = next(d for d in self.devices if d.name == device)
        return self._pair(found, place, TARGETS[place.target].brief(place))

    def _pair(self, operator: Operator, device: Device, brief: Brief) -> Pair:
        shown = self.memory.references.get(operator.hash)
        return Pair(
            run_id=self.run_id,
            epoch=self.epoch,
            operator=operator,
            device=device,
            contract=self.contract,
            settings=self.settings,
            brief=brief,
            lessons=self.memory.lessons.get(f"{device.name}/{operator.family}", ()),
            # A device's own kernel is no foreign one.
            reference=shown if shown and shown.device != device.name else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult:
    """What a pair reports when it has ended."""

    operator: str
    device: str
    verdict: str
    reason: str
    baseline: str | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    needs_review: bool
    steps: int
    new_steps: int
    """Steps done now; the others were on record."""
    seconds: float
    """Of all its steps, whenever they were done."""


def identify(campaign: Campaign) -> Campaign:
    """The campaign with its run id: a hash of all that its numbers depend on (DESIGN, 2)."""
    named = (
        *(o.hash + o.name for o in campaign.operators),
        *(dumps(d) for d in campaign.devices),
        dumps(campaign.contract),
        dumps(campaign.settings),
        dumps(campaign.crew),
        campaign.epoch,
        version_of_the_method(),
        dumps(environment()),
    )
    return replace(campaign, run_id=digest(*named))


def campaign_file(runs: Path, run_id: str) -> Path:
    return runs / "campaigns" / f"{run_id}.json"


def store_campaign(campaign: Campaign) -> Path:
    """The file that a flow reads its campaign from; LedgerError when it cannot be written."""
    path = campaign_file(Path(campaign.runs), campaign.run_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(dumps(campaign))
        partial.replace(path)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}; free space or choose another --runs"
        raise LedgerError(message) from error
    return path


def end(campaign: Campaign) -> None:
    """Marks the stored campaign as one whose pairs have all ended.

    A mark that the disk does not take costs a look through the ledger, the next night.
    """
    with suppress(OSError):
        if campaign_file(Path(campaign.runs), campaign.run_id).exists():
            _mark(campaign).touch()


def ended(campaign: Campaign) -> bool:
    """Whether all pairs came to their end at least once."""
    return _mark(campaign).exists()


def _mark(campaign: Campaign) -> Path:
    return campaign_file(Path(campaign.runs), campaign.run_id).with_suffix(".ended")


def read_campaign(path: Path) -> Campaign:
    """The campaign in a file that `store_campaign` wrote; read once for all pairs of a process."""
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, _changed_ns: int) -> Campaign:
    return loads(Campaign, path.read_text())


async def run_pair(
    campaign: Campaign,
    pair: Pair,
    *,
    iterate: Iterate | None = None,
    on_step: OnStep | None = None,
) -> PairResult:
    """Port one pair, going on from what the ledger holds of it."""
    runs = Path(campaign.runs)
    with claimed(runs, pair):
        ledger = Ledger(runs)
        known = ledger.history(pair.run_id, pair.operator.hash, pair.device.name)
        for iteration in known:
            _tell(on_step, iteration)
        history = await _ported(campaign, pair, known, iterate or loop.step, on_step)
        if len(history) > len(known):
            place = (pair.run_id, pair.operator.hash, pair.device.name)
            await asyncio.to_thread(ledger.compact, *place)
    return summary(history, pair, len(history) - len(known))


async def _ported(
    campaign: Campaign,
    pair: Pair,
    known: tuple[Iteration, ...],
    iterate: Iterate,
    on_step: OnStep | None,
) -> tuple[Iteration, ...]:
    """The whole history of the pair; machines and agents are reached only when a step is due."""
    ledger = Ledger(Path(campaign.runs))
    replay = replay_of(pair, ledger.root, campaign.crew.recording)
    if next_move(replay.seen(known) if replay else known, pair.settings) is None:
        return known
    campaign.meter.check()
    machine = machine_for(pair.device, Path(campaign.runs), scope=campaign.run_id)
    if isinstance(machine, SpoolMachine) and campaign.crew.keyless:
        return await spooled.ported(machine, pair, ledger, partial(_tell, on_step))
    workers = agents_for(campaign.crew, pair, ledger)

    async def ported(device: Device) -> tuple[Iteration, ...]:
        """Goes on from the ledger: what another machine did before it died is on record."""
        there = machine_for(device, Path(campaign.runs), scope=campaign.run_id)
        stages = stages_for(workers, there, partial(record, ledger))
        history = ledger.history(pair.run_id, pair.operator.hash, pair.device.name)
        placed = replace(pair, device=device)
        told = _told(iterate, on_step, campaign.meter)
        if replay is None:
            return await loop.port(placed, stages, history, told)
        seen = await loop.port(placed, stages, replay.seen(history), replay.along(told))
        return replay.ended(seen)

    return await somewhere(pair.device, Path(campaign.runs), ported)


def _told(iterate: Iterate, on_step: OnStep | None, taken: Meter) -> Iterate:
    """`iterate` within the campaign's limits, with each new row shown to whoever watches."""

    async def told(
        pair: Pair,
        admission: Admission,
        stages: Stages,
        move: Move,
        history: tuple[Iteration, ...],
    ) -> Iteration | None:
        taken.check()
        iteration = await iterate(pair, admission, stages, move, history)
        if iteration is not None:
            taken.count(iteration)
            _tell(on_step, iteration)
        return iteration

    return told


def _tell(on_step: OnStep | None, iteration: Iteration) -> None:
    if on_step is not None:
        on_step(iteration)


def summary(history: tuple[Iteration, ...], pair: Pair, new_steps: int) -> PairResult:
    """How the pair ended: the confirmed winner, else the last row."""
    shown = _deciding(history)
    confirmed = shown.right and shown.move.mode is Mode.CONFIRM
    return PairResult(
        operator=pair.operator.name,
        device=pair.device.name,
        verdict=str(shown.verdict),
        reason=shown.reason,
        baseline=shown.baseline if confirmed else None,
        speedup=shown.speedup if confirmed else None,
        speedup_low=shown.speedup_low if confirmed else None,
        speedup_high=shown.speedup_high if confirmed else None,
        needs_review=shown.needs_review,
        steps=sum(i.candidate is not None for i in history),
        new_steps=new_steps,
        seconds=sum(_seconds(i) for i in history),
    )


def _seconds(iteration: Iteration) -> float:
    """How long the step took, waiting for the device included."""
    ended, started = (datetime.fromisoformat(t) for t in (iteration.ended_at, iteration.started_at))
    return (ended - started).total_seconds()


def _deciding(history: tuple[Iteration, ...]) -> Iteration:
    confirmed = [i for i in history if i.move.mode is Mode.CONFIRM and i.right]
    return confirmed[-1] if confirmed else history[-1]
