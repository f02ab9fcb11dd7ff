"""A server as docs/operations.md starts one: prefect.toml of the checkout, no other settings.

Its port and folders are its own; everything else is as shipped.
"""

import base64
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tasks import served
from tests.flows.api import until
from tests.simulated.servers import free_port

ROOT = Path(__file__).parents[2]
PASSWORD = "kforge:canary-of-the-api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """The server that runs."""

    port: int
    folder: Path

    @property
    def page(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """Of a client that knows the password."""
        return {
            **_plain(),
            "PREFECT_HOME": str(self.folder / "client"),
            "PREFECT_API_URL": f"{self.page}/api",
            "PREFECT_API_AUTH_STRING": PASSWORD,
        }

    def written(self) -> bytes:
        """All that the server keeps: its database with what is not yet moved into it, its log."""
        files = [*self.folder.glob("prefect.db*"), self.folder / "server.log"]
        return b"".join(f.read_bytes() for f in files)


@contextmanager
def shipped(folder: Path) -> Iterator[Shipped]:
    """The server, ended with the block."""
    server = Shipped(port=free_port(), folder=folder)
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--port", str(server.port)],
            cwd=ROOT,
            env=_plain()
            | {
                "PREFECT_HOME": str(folder / "home"),
                "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{folder}/prefect.db",
                "PREFECT_SERVER_API_AUTH_STRING": PASSWORD,
                "PREFECT_SERVER_ENCRYPTION_KEY": base64.urlsafe_b64encode(bytes(32)).decode(),
                "PREFECT_UI_API_URL": f"{server.page}/api",
                "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": server.page,
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            until("the server", lambda: served.healthy(f"{server.page}/api"), 120)
            yield server
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)


def _plain() -> dict[str, str]:
    """The environment without settings of Prefect."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
