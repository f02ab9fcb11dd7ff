"""The one retry loop: only for faults of the world, with a limit and growing pauses."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from data.errors import MachineError, ModelError

T = TypeVar("T")

PAUSES_S = (2.0, 10.0, 30.0)
"""PREFECT.md, section 4: three tries more, jitter 0.3."""
JITTER = 0.3

Sleep = Callable[[float], Awaitable[None]]


async def patiently(
    attempt: Callable[[], Awaitable[T]],
    *,
    pauses_s: tuple[float, ...] = PAUSES_S,
    sleep: Sleep = asyncio.sleep,
) -> T:
    """What `attempt` returns; it is tried again when a machine or a model's transport failed."""
    for pause in pauses_s:
        try:
            return await attempt()
        except MachineError as error:
            if not error.retryable:
                raise
            wait = pause
        except ModelError as error:
            if not error.retryable:
                raise
            wait = max(pause, error.retry_after_s or 0.0)
        await sleep(wait * random.uniform(1.0, 1.0 + JITTER))
    return await attempt()
