"""Checks of this machine for `kforge doctor`."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from data.errors import KForgeError, MachineError
from data.files import ensure_writable
from targets import TARGETS
from targets.remote.zygote import Zygote
from tasks.served import DATABASE, PARALLEL

KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "DEEPSEEK_API_KEY",
    "AZURE_API_KEY",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str
    """What there is; when not ok, also what to do."""

    @property
    def state(self) -> str:
        return "PASS" if self.ok else "FAIL"


def checks(runs: Path) -> Iterator[Check]:
    """Everything that can be looked at without a server or a device."""
    yield _python()
    yield _package("torch", "pip install torch")
    yield from (_compiler(name) for name in TARGETS)
    yield _sandbox()
    yield _ledger(runs)
    yield _package("prefect", "pip install -e .")
    yield _database()
    yield _litellm()
    yield _keys()


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 11)
    return Check(name="python", ok=ok, found=found if ok else f"{found}; install 3.11 or later")


def _package(name: str, remedy: str) -> Check:
    try:
        return Check(name=name, ok=True, found=version(name))
    except PackageNotFoundError:
        return Check(name=name, ok=False, found=f"not installed; {remedy}")


def _compiler(target: str) -> Check:
    """Some compilers are executables, some are libraries that are loaded."""
    tools, programs = TARGETS[target].tools, TARGETS[target].programs
    paths = (programs[t].where() if t in programs else shutil.which(t) for t in tools)
    found = next((str(path) for path in paths if path), None)
    return Check(
        name=f"compiler {target}",
        ok=found is not None,
        found=found or f"none of {', '.join(tools)} is installed; make toolchains",
    )


def _sandbox() -> Check:
    """Tries the rungs as the judge will; a machine that offers none judges nothing."""
    with tempfile.TemporaryDirectory(prefix="kforge-doctor-") as folder:
        try:
            zygote = Zygote(Path(folder))
        except MachineError as error:
            return Check(name="sandbox", ok=False, found=str(error))
        zygote.close()
    return Check(name="sandbox", ok=True, found=zygote.rung)


def _ledger(runs: Path) -> Check:
    try:
        ensure_writable(runs)
    except KForgeError as error:
        return Check(name="ledger", ok=False, found=str(error))
    free = shutil.disk_usage(runs).free / 2**30
    return Check(
        name="ledger", ok=True, found=f"{runs.absolute()} is writable, {free:.0f} GiB free"
    )


def _database() -> Check:
    """What a server of ours would be started on; what a foreign one has nobody tells us."""
    given = os.environ.get(DATABASE, "sqlite")
    if given.startswith("sqlite"):
        found = f"SQLite: at most {PARALLEL} pairs at a time; more want PostgreSQL ({DATABASE})"
    else:
        found = f"{given.partition(':')[0]}: as many pairs at a time as --parallel says"
    return Check(name="prefect-database", ok=True, found=found)


def _litellm() -> Check:
    """A stolen release left a start-up hook behind (LLM.md, section 1)."""
    hooks = [p for p in map(Path, sys.path) if (p / "litellm_init.pth").exists()]
    if hooks:
        remedy = "delete it, reinstall litellm, and change every key that this machine held"
        return Check(name="litellm", ok=False, found=f"{hooks[0]}/litellm_init.pth; {remedy}")
    if find_spec("litellm") is None:
        return Check(name="litellm", ok=False, found="not installed; pip install -e .")
    return _package("litellm", "pip install -e .")


def _keys() -> Check:
    present = [name for name in KEYS if os.environ.get(name)]
    found = f"set: {', '.join(present)}" if present else "none is set; --agents offline needs none"
    return Check(name="api-keys", ok=True, found=found)
