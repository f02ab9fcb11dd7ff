"""The Prefect server that a campaign talks to: the user's, or one of ours left running."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from data.errors import MachineError
from tasks import served
from tasks.served import Server

COMMAND = (sys.executable, "-m", "prefect", "server", "start")
START_S = 120.0
"""A fresh database took 36 s on a loaded 2-core machine (PREFECT.md, section 1)."""
STOP_S = 15.0
BUSY_S = 60.0
"""Another campaign may keep it busy, or its starter may just have been killed."""


def ensure(runs: Path, *, say: Callable[[str], None] = lambda _: None) -> str:
    """The API's URL: PREFECT_API_URL when it is set, else of the folder's own server.

    Starts that one when it does not run and leaves it running. MachineError when neither answers.
    """
    given = os.environ.get("PREFECT_API_URL")
    if given:
        return _given(given)
    with served.only_one(runs):
        known = served.recorded(runs)
        if known is not None and _answers(known):
            return known.url
        stop(runs)
        return _start(runs, say).url


def _given(url: str) -> str:
    if not served.healthy(url, timeout_s=10.0):
        raise MachineError(
            f"no Prefect server answers at PREFECT_API_URL={public(url)}; start it, correct the"
            " variable, unset it (then one is started here), or use --engine local"
        )
    return url


def public(url: str) -> str:
    """The URL without user and password, fit to be shown."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def alive(server: Server) -> bool:
    """Whether the recorded process runs: same pid and same birth."""
    return bool(server.born) and _born(server.pid) == server.born


def _answers(server: Server) -> bool:
    """Whether a server on record serves; a busy or still starting one is given time."""
    deadline = time.monotonic() + BUSY_S
    while alive(server) and time.monotonic() < deadline:
        if served.healthy(server.url):
            return True
        time.sleep(0.5)
    return False


def stop(runs: Path) -> Server | None:
    """Ends the folder's server with its children; what was ended, None when nothing ran."""
    known = served.recorded(runs)
    served.forget(runs)
    if known is None or not alive(known):
        return None
    _signal(known.pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_S
    while alive(known) and time.monotonic() < deadline:
        time.sleep(0.1)
    _signal(known.pid, signal.SIGKILL)
    return known


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def _start(runs: Path, say: Callable[[str], None]) -> Server:
    say(f"starting a Prefect server (database {public(_database(served.folder(runs)))}) ...")
    process, server = _spawn(runs)
    served.record(runs, server)
    try:
        seconds = _wait(process, server)
    except BaseException:
        _signal(process.pid, signal.SIGKILL)
        served.forget(runs)
        raise
    process.returncode = 0  # it outlives us: nobody will wait for it
    say(f"Prefect UI: {server.page} (up after {seconds:.0f} s; left running)")
    return server


def _spawn(runs: Path) -> tuple[subprocess.Popen[bytes], Server]:
    place = served.folder(runs)
    port = _free_port()
    log = place / "server.log"
    with log.open("ab") as handle:
        process = subprocess.Popen(
            [*COMMAND, "--host", "127.0.0.1", "--port", str(port)],
            cwd=place,  # no prefect.toml of the user's folder is read
            env=environment(place, port),
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process, Server(
        pid=process.pid,
        born=_born(process.pid),
        port=port,
        database=public(_database(place)),
        log=str(log),
    )


def environment(place: Path, port: int) -> dict[str, str]:
    """For the server: its own settings, no keys of anybody, no request beyond the loopback."""
    kept = {k: os.environ[k] for k in ("PATH", "HOME", "LANG", "TMPDIR") if k in os.environ}
    page = f"http://127.0.0.1:{port}"
    return {
        **kept,
        "PREFECT_HOME": str(place / "home"),
        "PREFECT_API_DATABASE_CONNECTION_URL": _database(place),
        "PREFECT_UI_API_URL": f"{page}/api",
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": page,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_V2_ENABLED": "false",  # V2 calls an analytics host whatever is set
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
        # One transaction for each event (the default) locks SQLite against clients: entering ten
        # pairs met 7 to 16 answers 503 of 2 s each, with these two 3 to 5.
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "50",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "2",
        "DO_NOT_TRACK": "1",
        "PYTHONUNBUFFERED": "1",
    }


def database(runs: Path) -> str:
    """The database of the folder's server, or of the one to be started, without password."""
    known = served.recorded(runs)
    if known is not None and alive(known):
        return known.database
    return public(_database(runs / ".prefect"))


def _database(place: Path) -> str:
    """The URL of the database: PostgreSQL where the environment names one, else SQLite."""
    return os.environ.get(served.DATABASE) or f"sqlite+aiosqlite:///{place / 'prefect.db'}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], server: Server) -> float:
    """Seconds until the server answers; MachineError with the log's tail when it does not."""
    began = time.monotonic()
    while time.monotonic() - began < START_S:
        if served.healthy(server.url, timeout_s=1.0):
            return time.monotonic() - began
        if process.poll() is not None:
            raise MachineError(_failure(server, f"ended with code {process.returncode}"))
        time.sleep(0.2)
    raise MachineError(_failure(server, f"did not answer within {START_S:.0f} s"))


def _failure(server: Server, what: str) -> str:
    lines = [s.strip() for s in Path(server.log).read_text(errors="replace").splitlines()]
    tail = next((s for s in reversed(lines) if s), "the log is empty")
    return (
        f"the Prefect server {what}: {tail[:300]} (log: {server.log});"
        " set PREFECT_API_URL to a running one, or use --engine local"
    )


def _born(pid: int) -> str:
    """When the process started, as the system spells it; empty when there is none or a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] == "Z" else fields[19]  # starttime, clock ticks after boot
    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip()
