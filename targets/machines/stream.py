"""A stream of bytes to a host's resident and back: a process or an SSH channel carries it."""

import os
import select
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from data.errors import MachineError

CHUNK = 1 << 16
STOP_S = 5.0


class Stream(Protocol):
    """Bytes both ways; closing it from another thread ends whoever reads or writes."""

    def read(self, timeout_s: float) -> bytes:
        """What is there; empty at the end. TimeoutError when nothing came, OSError when broken."""

    def write(self, data: bytes) -> None:
        """All of it. OSError when broken."""

    def close(self) -> None: ...


class Pipe:
    """A local process's stdin and stdout: the machine at hand, or a vendor's own tunnel command."""

    def __init__(self, words: tuple[str, ...], environment: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(
                words,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise MachineError(f"cannot run {words[0]!r}: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout

    def read(self, timeout_s: float) -> bytes:
        """What is there; empty at the end."""
        readable, _, _ = select.select([self._out], [], [], timeout_s)
        if not readable:
            raise TimeoutError
        return os.read(self._out.fileno(), CHUNK)

    def write(self, data: bytes) -> None:
        """All of it."""
        self._in.write(data)
        self._in.flush()

    def close(self) -> None:
        """Ends the process."""
        with suppress(OSError):
            self._process.kill()
        self._process.wait(STOP_S)
        for end in (self._in, self._out):
            with suppress(OSError):
                end.close()


class Lines:
    """Lines out of a stream's bytes."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._rest = stream, bytearray()

    def next(self, timeout_s: float) -> bytes | None:
        """A line without its end; None when nothing came in time. EOFError at the end; OSError."""
        while (end := self._rest.find(b"\n")) < 0:
            try:
                chunk = self._stream.read(timeout_s)
            except TimeoutError:
                return None
            if not chunk:
                raise EOFError
            self._rest += chunk
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line
