"""Questions to the API of a test's Prefect server."""

import asyncio
import time
from collections.abc import Callable
from typing import Any


def ask(url: str, path: str, body: Any = None, method: str = "POST") -> Any:
    """What the API answers; the client fetches the token that writing needs."""
    from prefect.client.orchestration import PrefectClient

    async def asked() -> Any:
        async with PrefectClient(url) as client:
            answer = await client._client.request(method, path, json=body)
            answer.raise_for_status()
            return answer.json() if answer.content else None

    return asyncio.run(asked())


def until(what: str, look: Callable[[], Any], seconds: float) -> Any:
    """The first answer that is not empty."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(1.0)
    raise AssertionError(f"{what} did not come within {seconds:.0f} s")
