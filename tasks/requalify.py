"""Accepted kernels looked at again: whether they are right and as fast in today's environment.

The kernel that leads a place (operator, device, contract) is verified and timed against its
baseline as in a confirming run, and the row replaces the earlier look. When it loses, the next one
leads and is looked at in turn, until the leader's row is of today's environment.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Protocol

from agents import loop
from data.champions import champions, place_of
from data.errors import KForgeError, MisuseError
from data.records import Brief, Device, Iteration, Mode, Move, Pair, Settings, digest
from data.store import Ledger
from targets import TARGETS
from targets.machines import inventory
from targets.remote.peaks import Probe
from tasks import stages
from tasks.environment import version_of_the_method
from tasks.machines import close_machines, machine_for
from tasks.offline import Offline
from tasks.placing import somewhere
from tasks.record import record
from tasks.standing import Look, Place


class Machine(stages.Machine, Protocol):
    """A machine that also says what its numbers depend on."""

    async def probe(self, device: Device) -> Probe: ...


Find = Callable[[Device], Machine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is looked at, and where the rows go."""

    runs: Path
    operators: tuple[str, ...] = ()
    """Names; none means all."""
    devices: tuple[str, ...] = ()
    every: bool = False
    """Also kernels whose environment has not changed."""
    epoch: str = ""
    """Looks of one epoch are one run: what it has done is not done again."""


def environment_hash(environment: dict[str, str]) -> str:
    """What identifies driver, compiler, torch and card."""
    return digest(*(f"{name}={value}" for name, value in sorted(environment.items())))


def today() -> str:
    """The epoch of a re-qualification that nobody names: the day in UTC."""
    return datetime.now(UTC).date().isoformat()


def places(terms: Terms) -> list[tuple[Iteration, ...]]:
    """The accepted kernels of each place, leader first; MisuseError when a name fits none."""
    known = champions(terms.runs)
    found = [c for c in known if _wanted(c, terms)]
    for asked, names in (
        (terms.operators, {c.operator.name for c in known}),
        (terms.devices, {c.device.name for c in known}),
    ):
        for name in asked:
            if name not in names:
                listed = ", ".join(sorted(names)) or "none"
                raise MisuseError(f"no accepted kernel for {name!r}; known: {listed}")
    return [tuple(group) for _, group in groupby(found, place_of)]


def _wanted(champion: Iteration, terms: Terms) -> bool:
    return (not terms.operators or champion.operator.name in terms.operators) and (
        not terms.devices or champion.device.name in terms.devices
    )


async def requalify(terms: Terms, *, seen: Callable[[Place], None]) -> tuple[Place, ...]:
    """All places, each told to `seen` when it is done; devices side by side, kernels in turn."""
    found = places(terms)
    names = dict.fromkeys(kernels[0].device.name for kernels in found)
    by_device = [[k for k in found if k[0].device.name == name] for name in names]

    async def on_device(mine: list[tuple[Iteration, ...]]) -> list[Place]:
        done = []
        for kernels in mine:
            done.append(await _somewhere(kernels, terms))
            seen(done[-1])
        return done

    try:
        results = await asyncio.gather(*map(on_device, by_device))
    finally:
        close_machines()
    return tuple(place for of_device in results for place in of_device)


async def _somewhere(kernels: tuple[Iteration, ...], terms: Terms) -> Place:
    """The place after a look on any machine that has the device, or why there was none."""

    async def there(device: Device) -> Place:
        return await requalified(kernels, device, machine_for(device, terms.runs), terms)

    try:
        device = inventory.device(kernels[0].device.name)
        return await somewhere(device, terms.runs, there)
    except KForgeError as error:
        return failed(kernels, error)


async def requalified(
    kernels: Sequence[Iteration], device: Device, machine: Machine, terms: Terms
) -> Place:
    """The place after its leader was found anew; MachineError when the machine fails."""
    environment = (await machine.probe(device)).environment
    now = environment_hash(environment)
    run_id = digest("requalify", terms.epoch, now, version_of_the_method())
    standing = {k.candidate_id: k for k in kernels}
    looks: list[Look] = []
    while leader := _leader(standing.values()):
        if leader.run_id == run_id or (not terms.every and _hash(leader) == now):
            break
        pair = _pair(leader, device, run_id, terms.epoch)
        after = await _looked(pair, leader, machine, Ledger(terms.runs))
        if after is None:
            return _place(kernels, looks, leader, f"not admitted on {device.name} any more")
        looks.append(Look(before=leader, after=after))
        standing[leader.candidate_id] = after
    return _place(kernels, looks, leader, "")


def _place(
    kernels: Sequence[Iteration], looks: list[Look], leader: Iteration | None, fault: str
) -> Place:
    first = kernels[0]
    return Place(
        name=f"{first.operator.name}@{first.device.name}",
        contract=str(first.contract),
        looks=tuple(looks),
        leader=leader,
        fault=fault,
    )


def failed(kernels: Sequence[Iteration], error: KForgeError) -> Place:
    """The place when the world kept us from looking: its leader stays."""
    return _place(kernels, [], kernels[0], " ".join(str(error).split()))


def _hash(iteration: Iteration) -> str:
    return environment_hash(iteration.environment)


def _leader(kernels: Iterable[Iteration]) -> Iteration | None:
    """As the view `best` orders them."""
    right = [k for k in kernels if k.right]
    return max(right, key=lambda k: (k.speedup_low or 0.0, k.ended_at), default=None)


def _pair(leader: Iteration, device: Device, run_id: str, epoch: str) -> Pair:
    return Pair(
        run_id=run_id,
        epoch=f"requalify {epoch}",
        operator=leader.operator,
        device=device,
        contract=leader.contract,
        settings=Settings(),
        brief=_brief(device),
    )


def _brief(device: Device) -> Brief:
    return TARGETS[device.target].brief(device)


async def _looked(
    pair: Pair, leader: Iteration, machine: Machine, ledger: Ledger
) -> Iteration | None:
    """The confirming run of the leader, on record; None when the operator is refused."""
    does = stages.stages_for(Offline(0), machine, partial(record, ledger))
    admission = await does.admit(pair)
    if not admission.admitted:
        return None
    step = len(ledger.history(pair.run_id, pair.operator.hash, pair.device.name))
    move = Move(
        mode=Mode.CONFIRM, step=step, lineage=leader.move.lineage, parent=leader.candidate_id
    )
    return await loop.step(pair, admission, does, move, (leader,))
