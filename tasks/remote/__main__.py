"""What the archive does on another machine: `python3 kforge-remote.pyz serve|work|probe|version`.

Stdlib and torch only: there is no controller here, no network and no language model.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from data.codec import encode
from data.errors import KForgeError, MisuseError
from targets import TARGETS
from targets.machines.local import LocalMachine
from targets.remote.spool import Spool
from targets.remote.unpack import IDENTITY
from tasks.remote.work import Worker, capabilities

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """The exit code of a command: 0 done, 1 failed, 2 misuse."""
    asked = _parser().parse_args(arguments)
    try:
        return int(asked.command(asked))
    except KForgeError as error:
        print(f"kforge-remote: {' '.join(str(error).split())}", file=sys.stderr)
        return 2 if isinstance(error, MisuseError) else 1
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        print(f"kforge-remote: {sys.executable} has no torch: install it there", file=sys.stderr)
        return 1


def archive() -> str | None:
    """The hash of the archive that this was unpacked from; None in a checkout."""
    file = ROOT / IDENTITY
    return file.read_text().strip() if file.exists() else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kforge-remote", description="KForge's judge and offline loop on this machine."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    server = commands.add_parser("serve", help="judge what stdin asks, as lines of JSON")
    server.add_argument("--cache", type=Path, required=True, help="for what can be made again")
    server.set_defaults(command=_serve)
    worker = commands.add_parser("work", help="do the jobs of a spool, as long as it may take")
    worker.add_argument("folder", type=Path, metavar="DIR", help="the spool")
    worker.add_argument("--device", metavar="D", help="only jobs for the device of this name")
    worker.add_argument("--minutes", type=_minutes, metavar="M", help="stop in time, go on later")
    worker.add_argument("--cache", type=Path, help="for what can be made again")
    worker.set_defaults(command=_work)
    prober = commands.add_parser("probe", help="say what this machine has, as one JSON object")
    prober.add_argument("--cache", type=Path, help="measure its peaks too and keep them here")
    prober.set_defaults(command=_probe)
    teller = commands.add_parser("version", help="say what this is, as one JSON object")
    teller.set_defaults(command=_version)
    return parser


def _serve(asked: argparse.Namespace) -> int:
    from targets.remote import serve  # noqa: PLC0415  (torch costs seconds)

    serve.run(asked.cache)
    return 0


def _work(asked: argparse.Namespace) -> int:
    if not (asked.folder / "jobs").is_dir():
        raise MisuseError(f"{asked.folder} is no spool: it has no folder jobs")
    if (own := archive()) is None:
        raise MisuseError("jobs name the archive that does them: run kforge-remote.pyz beside them")
    carried = asked.folder.absolute() / "bubblewrap"
    if carried.is_dir() and not shutil.which("bwrap"):
        os.environ["PATH"] = f"{carried}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    machine = LocalMachine(asked.cache or _cache())
    worker = Worker(spool=Spool(asked.folder), archive=own, machine=machine, device=asked.device)
    seconds = None if asked.minutes is None else asked.minutes * 60.0
    return asyncio.run(worker.run(seconds))


def _cache() -> Path:
    """Beside the unpacked archive, which is ours alone, and never in the folder that is shared."""
    return ROOT.parent.parent / "cache"


def _minutes(text: str) -> float:
    value = float(text)
    if not 0.2 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.2 and 1000000")
    return value


def _version(_: argparse.Namespace) -> int:
    print(json.dumps(_versions()))
    return 0


def _versions() -> dict[str, Any]:
    return {"archive": archive(), "python": platform.python_version(), "torch": _torch()}


def _torch() -> str | None:
    """As its package says; None where there is none."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def _probe(asked: argparse.Namespace) -> int:
    """Versions, clock, disk, tools; peaks when there is a place to keep them."""
    found = {
        **_versions(),
        "clock_s": time.time(),
        "free_gib": shutil.disk_usage(asked.cache or Path.cwd()).free / 2**30,
        "targets": {name: encode(capabilities(target)) for name, target in TARGETS.items()},
    }
    if asked.cache:
        from targets.remote import peaks  # noqa: PLC0415  (torch costs seconds)

        found |= encode(peaks.probe(asked.cache.resolve()))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
