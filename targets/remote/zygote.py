"""The warm process that children are forked from: torch imported, nothing secret, nothing foreign.

The judge asks over a socket in a private folder. For each child the warm process forks a keeper,
which makes the namespaces, forks the child, reports how it ended and kills it when the judge lets
go of the connection. All die with their parents (`targets/remote/warm.py`).
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from data.errors import MachineError
from targets.remote import sandbox
from targets.remote.cgroup import sweep
from targets.remote.channel import Channel, ChannelError
from targets.remote.drain import Drain
from targets.remote.offspring import Child
from targets.remote.sandbox import Limits, View

START_S = 180.0
"""A cold dummy compile takes 17 s on an idle machine."""
WARM = "warm"
"""Folder in the cache for what the warm-up leaves, such as inductor's precompiled header."""


class Zygote:
    """The judge's side of the warm process; usable from forked job processes too."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self._owner = os.getpid()
        self._folder = Path(tempfile.mkdtemp(prefix="kforge-zygote-"))
        sweep()
        inductor = cache / "inductor"
        warm = cache / WARM
        for folder in (inductor, warm):
            folder.mkdir(parents=True, exist_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self._folder / "socket"))
            listener.listen(64)
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "targets.remote.warm"),
                    *(str(listener.fileno()), str(os.getpid())),
                ],
                env={
                    **sandbox.environment(inductor),
                    "TMPDIR": str(warm),
                    "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
                },
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno() if _has_fileno() else subprocess.DEVNULL,
            )

    def child(self, limits: Limits, view: View | None = None) -> Child:
        """A fresh child behind its walls, ready for its first message. Raises MachineError."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self._folder / "socket"))
        except OSError as error:
            raise MachineError(f"the judge's warm process is gone ({error})") from error
        mine, theirs = socket.socketpair()
        reading, writing = os.pipe()
        control = Channel(connection)
        seen = asdict(view or View())
        asked = {"seconds": limits.seconds, "tmpfs": limits.tmpfs_bytes, "view": seen}
        try:
            control.send(asked, fds=(theirs.fileno(), writing))
            born = control.receive(time.monotonic() + START_S).header
        except ChannelError as error:
            raise MachineError(f"the judge's warm process made no child ({error})") from error
        finally:
            theirs.close()
            os.close(writing)
        child = Child(born["pid"], Channel(mine), control, born["rung"])
        child.admit(limits, Drain(reading))
        return child

    def close(self) -> None:
        """Ends the warm process; its children die with it."""
        if os.getpid() == self._owner:
            self._process.kill()
            self._process.wait()
            shutil.rmtree(self._folder, ignore_errors=True)


def _has_fileno() -> bool:
    try:
        return sys.stderr.fileno() >= 0
    except (OSError, ValueError, AttributeError):
        return False
