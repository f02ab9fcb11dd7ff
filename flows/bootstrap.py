"""`kforge bootstrap`: what the Prefect server needs beside its deployments, made once.

Whatever is there is brought up to date, nothing is made twice, nothing of anybody else is touched.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from flows import server
from flows.engine import CLIENT
from targets.machines import inventory
from tasks import pages

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.events.schemas.automations import AutomationCore

POOL = "kforge"
PAIRS_A_PLACE = 16
"""Pairs in work on one device: models are slow, so that many keep one device busy."""
ALARM = "KFORGE_ALARM_URL"
"""Where the alarm is posted; its text is all that leaves."""


def prepare(runs: Path, *, as_json: bool) -> None:
    """Prints what is on the server afterwards, a line each."""
    if "PREFECT_API_URL" not in os.environ:
        os.environ.setdefault("PREFECT_HOME", str(runs.absolute() / ".prefect" / "home"))
    os.environ["PREFECT_API_URL"] = server.ensure(runs, say=partial(print, file=sys.stderr))
    for name, value in CLIENT.items():
        os.environ.setdefault(name, value)
    asyncio.run(_prepare(as_json=as_json))


async def _prepare(*, as_json: bool) -> None:
    from prefect.client.orchestration import get_client  # noqa: PLC0415  (Prefect costs 1.1 s)

    async with get_client() as client:
        for make in (_pool, _queues, _limits, _automations, _alarm):
            async for kind, name, said in make(client):
                row = {"kind": kind, "name": name, "said": said}
                print(json.dumps(row) if as_json else f"{kind:11} {name:22} {said}")


Made = AsyncIterator[tuple[str, str, str]]


async def _pool(client: "PrefectClient") -> Made:
    """The work pool whose workers run processes."""
    from prefect.client.schemas.actions import WorkPoolCreate  # noqa: PLC0415
    from prefect.exceptions import ObjectNotFound  # noqa: PLC0415

    try:
        found = await client.read_work_pool(POOL)
    except ObjectNotFound:
        found = await client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
    yield "work pool", POOL, f"type {found.type}; prefect worker start --pool {POOL}"


async def _queues(client: "PrefectClient") -> Made:
    """One queue a device, one run at a time in each: for runs that concern a single device."""
    from prefect.client.schemas.filters import (  # noqa: PLC0415
        WorkQueueFilter,
        WorkQueueFilterName,
    )

    for name in (pages.slug(d) for d in inventory.devices()):
        named = WorkQueueFilter(name=WorkQueueFilterName(any_=[name]))
        found = await client.read_work_queues(work_pool_name=POOL, work_queue_filter=named)
        if not found:
            await client.create_work_queue(name, work_pool_name=POOL, concurrency_limit=1)
        yield "work queue", name, "one run at a time"


async def _limits(client: "PrefectClient") -> Made:
    """A limit a device, held by each pair in work on it: the UI shows who works and who waits."""
    from tasks.slots import limit_of  # noqa: PLC0415

    for device in inventory.devices().values():
        name, slots = limit_of(device.name), PAIRS_A_PLACE * _places(device.name)
        await client.upsert_global_concurrency_limit_by_name(name, slots)
        yield "limit", name, f"{slots} pairs in work"


def _places(name: str) -> int:
    return len(inventory.places(inventory.device(name)))


async def _automations(client: "PrefectClient") -> Made:
    from flows.automations import crashed, silent  # noqa: PLC0415

    for wanted in (silent(), crashed(POOL)):
        await _automation(client, wanted)
        yield "automation", wanted.name, wanted.description


async def _automation(client: "PrefectClient", wanted: "AutomationCore") -> None:
    found = await client.read_automations_by_name(wanted.name)
    if found:
        await client.update_automation(found[0].id, wanted)
    else:
        await client.create_automation(wanted)


async def _alarm(client: "PrefectClient") -> Made:
    """A block that posts to somebody's URL, and who uses it; nothing without the variable."""
    url = os.environ.get(ALARM)
    if not url:
        yield "block", "kforge-alarm", f"not made: {ALARM} is not set"
        return
    from prefect.blocks.notifications import CustomWebhookNotificationBlock  # noqa: PLC0415

    from flows.automations import alarm  # noqa: PLC0415

    block = CustomWebhookNotificationBlock(
        name="KForge",
        url=url,
        headers=None,
        cookies=None,
        json_data={"subject": "{{subject}}", "text": "{{body}}"},
    )
    saved = await block.save("kforge-alarm", overwrite=True)
    assert isinstance(saved, UUID)
    wanted = alarm(POOL, saved)
    await _automation(client, wanted)
    yield "block", "kforge-alarm", f"posts to the URL of {ALARM}"
    yield "automation", wanted.name, wanted.description
