"""The detached Prefect server of a ledger folder, as it stands on disk under `RUNS/.prefect/`."""

import fcntl
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from data import codec
from data.errors import LedgerError, MisuseError

PARALLEL = 2
"""Pairs at a time: from four on, SQLite under Prefect loses some to HTTP 503 (PREFECT.md, 2)."""


DATABASE = "PREFECT_API_DATABASE_CONNECTION_URL"
"""Prefect's own variable: what a server of ours is started with; SQLite when it is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that was started for a ledger folder."""

    pid: int
    """Leader of its session and process group."""
    born: str
    """When the process started, as the system spells it: a pid alone may be somebody else's."""
    port: int
    database: str
    log: str

    @property
    def url(self) -> str:
        """What PREFECT_API_URL holds for clients."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def page(self) -> str:
        """Where a browser looks."""
        return f"http://127.0.0.1:{self.port}"


def bears(database: str, parallel: int) -> None:
    """MisuseError when the database loses pairs at so many at a time."""
    if parallel > PARALLEL and database.startswith("sqlite"):
        raise MisuseError(
            f"--parallel is {parallel}; SQLite under Prefect bears {PARALLEL}: start the server on"
            f" PostgreSQL ({DATABASE}, docs/operations.md) or use --engine local"
        )


def folder(runs: Path) -> Path:
    """`RUNS/.prefect`, made if it is not there; LedgerError when it cannot be."""
    place = runs.absolute() / ".prefect"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"cannot write to '{runs}': {error.strerror}; give a writable --runs"
        ) from error
    return place


def recorded(runs: Path) -> Server | None:
    """The server on record, alive or not; None when there is none or the record is damaged."""
    try:
        return codec.loads(Server, (runs / ".prefect" / "server.json").read_text())
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def record(runs: Path, server: Server) -> None:
    """Writes the record whole or not at all."""
    place = folder(runs)
    draft = place / f"server.json.{os.getpid()}"
    draft.write_text(codec.dumps(server) + "\n")
    draft.replace(place / "server.json")


def forget(runs: Path) -> None:
    """Removes the record."""
    (runs / ".prefect" / "server.json").unlink(missing_ok=True)


def healthy(url: str, *, timeout_s: float = 3.0) -> bool:
    """Whether the API at `url` answers that it is well."""
    if not url.startswith(("http://", "https://")):
        return False
    try:
        with _direct(url).open(f"{url.rstrip('/')}/health", timeout=timeout_s) as answer:
            return bool(answer.status == 200 and answer.read(64).strip() == b"true")
    except (OSError, ValueError):
        return False


def _direct(url: str) -> urllib.request.OpenerDirector:
    """An opener that asks no proxy for the loopback."""
    if "://127.0.0.1" in url or "://localhost" in url:
        return urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener()


@contextmanager
def only_one(runs: Path) -> Iterator[None]:
    """Holds the folder's lock, so that two starters make one server; freed when a holder dies."""
    with (folder(runs) / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
