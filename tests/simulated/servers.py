"""What a campaign talks to, started for a test and ended with it: model, database, Prefect."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flows import server
from tasks import served
from tasks.served import DATABASE

ROOT = Path(__file__).parents[2]
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
"""Of Debian's packages, the latest last."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def model(log: Path) -> Iterator[str]:
    """The API base of a scripted model; hashes of the prompts that it was asked go to `log`."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.simulated.model", str(port), str(log)], cwd=ROOT
    )
    try:
        listening(port, 30.0)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def listening(port: int, patience_s: float) -> None:
    """Waits until something listens on the loopback."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if answers(port):
            return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on port {port}")


def answers(port: int) -> bool:
    """Whether something listens on the loopback."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def have_postgresql() -> bool:
    """Whether Debian's programs are here, and a user whom they serve."""
    return bool(BINARIES) and (os.geteuid() != 0 or _user() is not None)


def _user() -> str | None:
    """PostgreSQL does not serve root: the user to become, None when we may stay."""
    try:
        return pwd.getpwnam("postgres").pw_name if os.geteuid() == 0 else None
    except KeyError:
        return None


needs_postgresql = pytest.mark.skipif(
    not have_postgresql(), reason="no PostgreSQL here: apt-get install postgresql"
)


class Postgresql:
    """A database cluster of its own, on the loopback; may be killed and started again."""

    def __init__(self) -> None:
        # Not below pytest's folder, which each session closes to other users anew.
        self.folder = Path(tempfile.mkdtemp(prefix="kforge-postgresql-"))
        self.data, self.port, self.log = self.folder / "data", free_port(), self.folder / "log"
        if (user := _user()) is not None:
            shutil.chown(self.folder, user)
            for above in self.folder.parents:
                if above.stat().st_uid == 0 and above != Path("/"):
                    above.chmod(above.stat().st_mode | 0o011)
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "kforge", "--no-sync")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql+asyncpg://kforge@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Starts it and waits until it listens.

        After a kill the processes of the former one may hold its memory for a moment: once more.
        """
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            self._spawn()
            while self.alive and time.monotonic() < deadline:
                if answers(self.port):
                    return
                time.sleep(0.2)
            time.sleep(0.5)
        raise TimeoutError(self.log.read_text()[-2000:])

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _spawn(self) -> None:
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        words = [w for k, v in settings.items() for w in ("-c", f"{k}={v}")]
        command = [str(BINARIES[-1] / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [*command, *words],
                user=_user(),
                cwd="/",
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Ends the postmaster; its children end when they notice."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def close(self) -> None:
        """Ends it and removes its folder."""
        self.kill(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [BINARIES[-1] / program, *words],
            user=_user(),
            cwd="/",
            check=True,
            stdout=subprocess.DEVNULL,
        )


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of a fresh database."""
    database = Postgresql()
    try:
        database.start()
        yield database.url
    finally:
        database.close()


@contextmanager
def prefect_server(root: Path, database: str) -> Iterator[str]:
    """The API's URL of a server on that database, as `kforge port` would start it."""
    before = os.environ.get(DATABASE)
    os.environ[DATABASE] = database
    try:
        yield server.ensure(root)
    finally:
        server.stop(root)
        os.environ.pop(DATABASE)
        if before is not None:
            os.environ[DATABASE] = before


class PrefectServer:
    """A server on a port of its own; may be killed and started again."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.port = folder, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._environment = server.environment(folder, self.port) | {DATABASE: database}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, patience_s: float = 180.0) -> None:
        """Starts it and waits until it answers."""
        self.spawn()
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if served.healthy(self.url, timeout_s=1.0):
                return
            time.sleep(0.3)
        raise TimeoutError((self.folder / "server.log").read_text()[-2000:])

    def spawn(self) -> None:
        """Starts it."""
        with (self.folder / "server.log").open("ab") as out:
            self.process = subprocess.Popen(
                [*server.COMMAND, "--host", "127.0.0.1", "--port", str(self.port)],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Ends it and its children."""
        if self.process is not None:
            os.killpg(self.process.pid, number)
            self.process.wait()
            self.process = None
