"""A device's limit on the Prefect server, of which each pair in work holds a slot.

It is for people: who works, who waits. `kforge bootstrap` makes it; without it nothing is held. The
lock file on the device's machine, not this limit, keeps timings apart.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prefect.client.orchestration import get_client
from prefect.concurrency.asyncio import concurrency
from prefect.exceptions import ObjectNotFound

from tasks import pages

HELD_S = 120.0
"""A slot comes back so long after its holder was killed."""

_known: dict[str, bool] = {}


def limit_of(device: str) -> str:
    """The limit's name."""
    return f"device-{pages.slug(device)}"


@asynccontextmanager
async def slot(device: str) -> AsyncIterator[None]:
    """Holds a slot of the device's limit where there is one; waits for it."""
    name = limit_of(device)
    if name not in _known:
        _known[name] = await _exists(name)
    if not _known[name]:
        yield
        return
    async with concurrency(name, lease_duration=HELD_S):
        yield


async def _exists(name: str) -> bool:
    async with get_client() as client:
        try:
            await client.read_global_concurrency_limit_by_name(name)
        except ObjectNotFound:
            return False
    return True
