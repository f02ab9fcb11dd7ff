"""A way to a host through a command of the user's, as `ProxyCommand` of ssh: SSM and the like."""

import os
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress

TAIL = 300
STOP_S = 5.0


class Tunnel(socket.socket):
    """A socket whose other end is the stdin and stdout of a command, which ends with it."""

    def __init__(self, command: str) -> None:
        """OSError when there is no shell."""
        ours, theirs = socket.socketpair()
        super().__init__(fileno=ours.detach())
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the socket)
        self._said = ""
        with theirs:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._errors,
                start_new_session=True,
            )

    def said(self) -> str:
        """The end of what the command complained of."""
        if not self._errors.closed:
            size = os.fstat(self._errors.fileno()).st_size
            data = os.pread(self._errors.fileno(), TAIL, max(0, size - TAIL))
            self._said = " ".join(data.decode(errors="replace").split())
        return self._said

    def close(self) -> None:
        """Ends the command with all its processes; twice is no fault."""
        super().close()
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_S)
        self.said()
        self._errors.close()
