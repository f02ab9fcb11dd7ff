"""A stream of bytes to a host's resident and back: an SSH channel, or whatever carries it."""

from typing import Protocol

CHUNK = 1 << 16


class Stream(Protocol):
    """Bytes both ways; closing it from another thread ends whoever reads or writes."""

    def read(self, timeout_s: float) -> bytes:
        """What is there; empty at the end. TimeoutError when nothing came, OSError when broken."""

    def write(self, data: bytes) -> None:
        """All of it. OSError when broken."""

    def close(self) -> None: ...


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
