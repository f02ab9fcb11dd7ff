"""Prefect second: what it does not hear is told in the log and stops no work.

The ledger holds every step; a server that restarts costs a picture, not a pair.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx

from data.errors import MachineError

T = TypeVar("T")

PAUSES_S = (2.0, 10.0, 30.0, 60.0, 120.0)
"""A server and its database are back from a restart within four minutes, or somebody must look."""

Sleep = Callable[[float], Awaitable[None]]

_LOG = logging.getLogger("tasks.prefect")


async def told(call: Awaitable[T]) -> T | None:
    """What the server answers; None, with a line in the log, when it cannot be reached."""
    try:
        return await call
    except httpx.HTTPError as error:
        _LOG.warning("the Prefect server did not take it: %s", _said(error))
        return None


async def patiently(
    enter: Callable[[], Awaitable[T]],
    *,
    pauses_s: tuple[float, ...] = PAUSES_S,
    sleep: Sleep = asyncio.sleep,
) -> T:
    """What `enter` returns; it is called again when the server, not the work, has failed.

    MachineError when the server stays away.
    """
    for pause in pauses_s:
        try:
            return await enter()
        except httpx.HTTPError as error:
            _LOG.warning("the Prefect server failed, once more in %.0f s: %s", pause, _said(error))
        await sleep(pause)
    try:
        return await enter()
    except httpx.HTTPError as error:
        raise MachineError(f"the Prefect server failed: {_said(error)}") from error


def _said(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
