"""What a queue of jobs costs on a host behind SSH."""

import argparse
import asyncio
import sys

import pytest

from benchmarks.dispatch import idle, overhead
from targets.machines.ssh import ssh_machine
from tests.targets.machines.hosts import Host

pytestmark = pytest.mark.net


async def test_a_device_hardly_waits_between_queued_jobs(hosts: tuple[Host, ...]) -> None:
    """A warm job costs at most 150 ms, 200 queued ones leave gaps below 5 % of their own time."""
    machine = ssh_machine(hosts[0].destination(python=sys.executable), scope="tests")
    await machine.run(("true",), 60.0)
    cost = await overhead(machine)
    gaps = await idle(machine, machine.turn, argparse.Namespace(jobs=200, seconds=0.2))
    await asyncio.to_thread(machine.close)
    assert cost["median_ms"] <= 150, cost
    assert gaps["idle"] < 0.05, gaps
