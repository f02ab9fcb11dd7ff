"""What a child prints: a bounded head and tail, never parsed."""

import contextlib
import os
import threading

KEPT = 1 << 19
"""Bytes kept of the head and of the tail of what a child prints."""


class Drain:
    """Reads what a child prints, keeps head and tail, parses nothing."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._head, self._tail, self._lost = bytearray(), bytearray(), 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Control characters stripped: a log must not rewrite a screen."""
        cut = f"\n... {self._lost} bytes cut ...\n".encode() if self._lost else b""
        text = bytes(self._head + cut + self._tail).decode(errors="replace")
        return "".join(c for c in text if c in "\n\t" or c.isprintable())

    def join(self) -> None:
        self._thread.join(1.0)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._fd, 1 << 16):
                self._keep(data)
        os.close(self._fd)

    def _keep(self, data: bytes) -> None:
        room = KEPT - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        self._lost += max(len(self._tail) - KEPT, 0)
        del self._tail[:-KEPT]
