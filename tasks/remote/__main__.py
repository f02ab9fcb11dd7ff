"""What the archive does on another machine: `python3 kforge-remote.pyz serve|work|probe|version`.

Stdlib and torch only: there is no controller here, no network and no language model.
"""

import argparse
import json
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
from targets.remote.unpack import IDENTITY

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
        "targets": {name: _capabilities(name) for name in TARGETS},
    }
    if asked.cache:
        from targets.remote import peaks  # noqa: PLC0415  (torch costs seconds)

        found |= encode(peaks.probe(asked.cache.resolve()))
    print(json.dumps(found))
    return 0


def _capabilities(name: str) -> Any:
    tools = frozenset(t for t in TARGETS[name].tools if shutil.which(t))
    return encode(TARGETS[name].capabilities(tools))


if __name__ == "__main__":
    sys.exit(main())
