"""`kforge admit`: the operators of a suite, probed side by side, timed one after the other."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from data.errors import MisuseError
from data.operator import find, read_suite
from data.records import Admission, Contract, Device, Operator
from tasks.lease import leased
from tasks.retry import patiently

MEMORY_MIB = 6 << 10
"""That a probe of one call of 1 GB may take: outputs of several runs, in float64 too."""
SUITES = (".parquet", ".jsonl", ".ndjson")


class Machine(Protocol):
    """What an admission needs of the machine that holds the device."""

    async def admit(
        self,
        operator: Operator,
        contract: Contract,
        device: Device,
        *,
        timed: bool = False,
        insist: bool = False,
    ) -> Admission: ...

    def turn(self, device: Device) -> AbstractAsyncContextManager[object]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the operators are admitted under."""

    device: Device
    contract: Contract
    timed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """An operator with what was found of it."""

    operator: Operator
    admission: Admission


def asked(names: Sequence[str]) -> tuple[Operator, ...]:
    """Operators by name, file, suite folder or suite file; none means all of ours."""
    suites = [Path(n) for n in names if _is_suite(n)]
    others = [n for n in names if not _is_suite(n)]
    found = [o for suite in suites for o in read_suite(suite)]
    if others or not names:
        found += find(others)
    if not found:
        raise MisuseError(f"no operator in {', '.join(names)}")
    return tuple({o.hash: o for o in found}.values())


def _is_suite(name: str) -> bool:
    return name.endswith(SUITES) or Path(name).is_dir()


async def admissions(
    machine: Machine, operators: Sequence[Operator], terms: Terms
) -> AsyncIterator[Admitted]:
    """Each operator as soon as it is known. MachineError ends it.

    Probes run side by side, one a core; baselines are timed alone, under the device's lease.
    """
    room = asyncio.Semaphore(at_once())

    async def one(operator: Operator) -> Admitted:
        admit = partial(machine.admit, operator, terms.contract, terms.device, insist=True)
        async with room:
            admission = await patiently(admit)
        if terms.timed and admission.admitted:
            admission = await leased(machine, terms.device, partial(admit, timed=True))
        return Admitted(operator=operator, admission=admission)

    waiting = [asyncio.ensure_future(one(o)) for o in operators]
    try:
        for done in asyncio.as_completed(waiting):
            yield await done
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def at_once() -> int:
    """Probes side by side: one a core, as many as the memory holds."""
    pages = os.sysconf("SC_AVPHYS_PAGES") if "SC_AVPHYS_PAGES" in os.sysconf_names else 0
    free_mib = pages * os.sysconf("SC_PAGE_SIZE") >> 20
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return max(1, min(cores, free_mib // MEMORY_MIB))
