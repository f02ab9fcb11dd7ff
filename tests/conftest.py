"""What tests of several folders share."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from targets.remote.sandbox import Limits
from targets.remote.zygote import WARM, Zygote

# Prefect configures logging for the process that imports it; other tests log outside of runs.
os.environ.setdefault("PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW", "ignore")


@pytest.fixture(scope="session")
def warmed(request: pytest.FixtureRequest) -> Callable[[Path], Path]:
    """Puts into a judge's fresh cache what a cold start compiles, 17 s of it; returns the cache."""
    assert request.config.cache is not None
    seed = Path(request.config.cache.mkdir("warmed"))
    with (seed / "lock").open("w") as alone:  # tests of two processes want it at once
        fcntl.flock(alone, fcntl.LOCK_EX)
        if not (seed / "done").exists():
            zygote = Zygote(seed)
            zygote.child(Limits(memory_bytes=1 << 30, seconds=60.0)).end()
            zygote.close()
            (seed / "done").touch()

    def share(cache: Path) -> Path:
        for name in ("inductor", WARM):
            shutil.copytree(seed / name, cache / name, dirs_exist_ok=True)
        return cache

    return share
