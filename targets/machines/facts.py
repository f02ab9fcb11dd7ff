"""What a host says of itself for `kforge doctor`: looked up without importing torch."""

import platform
import shutil
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from data.errors import MachineError
from targets import TARGETS
from targets.remote.compiler import installed
from targets.remote.lease import holders, user
from targets.remote.occupants import ASK, occupants
from targets.remote.zygote import Zygote


def facts(root: Path) -> dict[str, Any]:
    """Versions, tools, disk, clock, leases, foreign processes and the sandbox."""
    root.mkdir(parents=True, exist_ok=True)
    return {
        "user": user(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "executable": sys.executable,
        "torch": _installed("torch"),
        "tools": {n: next(iter(installed(t).values()), None) for n, t in TARGETS.items()},
        "root": str(root),
        "free_gib": shutil.disk_usage(root).free / 2**30,
        "clock_s": time.time(),
        "leases": {device: str(holder) for device, holder in holders().items()},
        "occupants": {name: [str(o) for o in occupants(name, 0)] for name in ASK},
        "sandbox": sandbox(),
    }


def sandbox() -> dict[str, Any]:
    """Whether candidates can be shut in here, tried as the judge will, and how or why not."""
    with tempfile.TemporaryDirectory(prefix="kforge-doctor-") as folder:
        try:
            zygote = Zygote(Path(folder))
        except MachineError as error:
            return {"ok": False, "found": str(error)}
        zygote.close()
        return {"ok": True, "found": zygote.rung}


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
