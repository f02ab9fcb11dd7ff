"""Checks of the other machines for `kforge doctor`: reachable, able, roomy, right."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from data.errors import KForgeError, MachineError
from data.records import Device
from targets.machines import inventory
from targets.machines.ssh import ssh_machine
from tasks import soundness
from tasks.health import Check
from tasks.machines import destination, machine_for

FACTS_S = 90.0
"""The sandbox is tried, which imports torch."""
LEAST_GIB = 2.0
"""A judge's caches and a job's files."""
SKEW_S = 60.0
"""Nothing here depends on the host's clock; its logs and file times mislead beyond this."""


def host_checks(runs: Path) -> Iterator[Check]:
    """All that can be said of each machine; one that cannot be reached has one line."""
    for name, entry in inventory.destinations().items():
        machine = ssh_machine(destination(entry), scope="doctor")
        try:
            asked = time.time()
            facts = asyncio.run(machine.facts(FACTS_S))
            skew_s = facts["clock_s"] - (asked + time.time()) / 2
        except MachineError as error:
            yield Check(name=f"{name} reachable", ok=False, found=str(error))
            continue
        finally:
            machine.close()
        yield Check(name=f"{name} reachable", ok=True, found=f"{facts['user']}, {facts['system']}")
        devices = [d for d in inventory.every_place() if d.machine == name]
        yield from _facts(name, facts, skew_s, {d.target for d in devices})
        for device in devices:
            yield _sound(device, runs)


def _facts(name: str, facts: dict[str, Any], skew_s: float, needed: set[str]) -> Iterator[Check]:
    """What the host says of itself, against what its devices need."""
    told = f"{facts['python']} at {facts['executable']}"
    yield Check(name=f"{name} python", ok=True, found=told)
    torch = facts["torch"]
    remedy = f"not installed for {facts['executable']}; install it or set python for {name}"
    yield Check(name=f"{name} torch", ok=torch is not None, found=torch or remedy)
    for target in sorted(needed):
        tool = facts["tools"].get(target)
        found = tool or "no compiler found there; install one"
        yield Check(name=f"{name} tools {target}", ok=tool is not None, found=found)
    free = facts["free_gib"]
    room = f"{free:.0f} GiB free at {facts['root']}"
    enough = free >= LEAST_GIB
    yield Check(
        name=f"{name} disk",
        ok=enough,
        found=room if enough else f"{free:.1f} GiB free at {facts['root']}; kforge reap {name}",
    )
    right = abs(skew_s) <= SKEW_S
    remedy = "" if right else "; no result depends on it, but start its time service"
    yield Check(name=f"{name} clock", ok=right, found=f"{skew_s:+.1f} s from ours{remedy}")
    held = "; ".join(f"{d} by {who}" for d, who in facts["leases"].items()) or "all free"
    others = "; ".join(o for found in facts["occupants"].values() for o in found)
    busy = f"; without a lease: {others}" if others else ""
    yield Check(name=f"{name} leases", ok=not others, found=held + busy)
    yield Check(name=f"{name} sandbox", **facts["sandbox"])


def _sound(device: Device, runs: Path) -> Check:
    """Whether the device's known kernel is judged right there."""
    began = time.monotonic()
    machine = machine_for(device, runs)
    name = f"{device.machine} device {device.name}"
    try:
        asyncio.run(soundness.check(machine, device))
    except KForgeError as error:
        return Check(name=name, ok=False, found=str(error))
    finally:
        machine.close()
    took = time.monotonic() - began
    return Check(name=name, ok=True, found=f"judges a known kernel right, in {took:.0f} s")
