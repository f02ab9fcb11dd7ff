"""What a host says of itself for `kforge doctor`: looked up without importing torch."""

import os
import platform
import shutil
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from targets import TARGETS
from targets.remote import sandbox
from targets.remote.lease import holders, user
from targets.remote.occupants import ASK, occupants


def facts(root: Path) -> dict[str, Any]:
    """Versions, tools, disk, clock, leases, foreign processes and the sandbox's rung."""
    root.mkdir(parents=True, exist_ok=True)
    return {
        "user": user(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "executable": sys.executable,
        "torch": _installed("torch"),
        "tools": {name: _tool(target.tools) for name, target in TARGETS.items()},
        "root": str(root),
        "free_gib": shutil.disk_usage(root).free / 2**30,
        "clock_s": time.time(),
        "leases": {device: str(holder) for device, holder in holders().items()},
        "occupants": {name: [str(o) for o in occupants(name, 0)] for name in ASK},
        "rung": rung(),
    }


def rung() -> str:
    """The strongest sandbox that works here: tried in a child."""
    if not hasattr(os, "unshare") and platform.system() != "Linux":
        return sandbox.PROCESS
    child = os.fork()
    if child == 0:
        try:
            sandbox.unshare()
        except BaseException:  # noqa: BLE001 (the child's edge)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return sandbox.UNSHARE if status == 0 else sandbox.PROCESS


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _tool(names: tuple[str, ...]) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)
