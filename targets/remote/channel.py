"""Frames between the judge and a child: a JSON header and raw bytes, never pickle.

A frame is 12 bytes (length of the header, length of the body), the header, the body. The judge
never takes descriptors from a child and never reads more than a limit.
"""

import contextlib
import json
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PREFIX = struct.Struct("<IQ")
CREDENTIALS = struct.Struct("3i")
"""Process, user and group of a sender (`struct ucred`)."""
HEADER_LIMIT = 1 << 20
BODY_LIMIT = 64 << 20
"""A source or an answer; tensors travel through shared memory (`arena.py`)."""


class ChannelError(Exception):
    """The other side did not answer as agreed."""


class Closed(ChannelError):  # noqa: N818 (what happened, not a fault of ours)
    """The other side is gone."""


class Late(ChannelError):  # noqa: N818
    """The deadline passed."""


class Malformed(ChannelError):  # noqa: N818
    """What came is no frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message, with the descriptors that came along."""

    header: dict[str, Any]
    body: bytes = b""
    fds: tuple[int, ...] = ()


class Channel:
    """One end of a socket pair; `deadline` is a time of `time.monotonic`."""

    def __init__(self, sock: socket.socket, *, takes_fds: bool = False) -> None:
        self.socket = sock
        self._takes_fds = takes_fds

    def send(self, header: dict[str, Any], body: bytes = b"", *, fds: Sequence[int] = ()) -> None:
        """Raises Closed."""
        text = json.dumps(header).encode()
        self.send_raw(PREFIX.pack(len(text), len(body)) + text + body, fds=fds)

    def send_raw(self, data: bytes, *, fds: Sequence[int] = ()) -> None:
        """Bytes that are a frame already: a start signal should cost nothing. Raises Closed."""
        try:
            self.socket.settimeout(30.0)
            sent = socket.send_fds(self.socket, [data], list(fds)) if fds else 0
            self.socket.sendall(data[sent:])
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self, deadline: float | None = None) -> Frame:
        """The next frame. Raises Closed, Late or Malformed."""
        fds: list[int] = []
        prefix = self._read(PREFIX.size, deadline, fds)
        header_size, body_size = PREFIX.unpack(prefix)
        if header_size > HEADER_LIMIT or body_size > BODY_LIMIT:
            raise Malformed(f"a frame of {header_size} + {body_size} bytes")
        rest = self._read(header_size + body_size, deadline, fds)
        return Frame(_header(rest[:header_size]), rest[header_size:], tuple(fds))

    def spoke(self, within_s: float = 0.0) -> bool:
        """Whether the other side has said something that nobody asked for."""
        ready, _, _ = select.select([self.socket], [], [], within_s)
        return bool(ready) and bool(self.socket.recv(1, socket.MSG_PEEK))

    def close(self) -> None:
        self.socket.close()

    def _read(self, size: int, deadline: float | None, fds: list[int]) -> bytes:
        data = bytearray()
        while len(data) < size:
            data += self._some(min(size - len(data), 1 << 20), deadline, fds)
        return bytes(data)

    def _some(self, size: int, deadline: float | None, fds: list[int]) -> bytes:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise Late
        try:
            self.socket.settimeout(left)
            if self._takes_fds:
                data, found, _, _ = socket.recv_fds(self.socket, size, 8)
                fds.extend(found)
            else:
                data = self.socket.recv(size)
        except TimeoutError as error:
            raise Late from error
        except OSError as error:
            raise Closed(str(error)) from error
        if not data:
            raise Closed("end of stream")
        return data


def message(header: dict[str, Any]) -> bytes:
    """A frame without a body, ready for `send_raw`."""
    text = json.dumps(header).encode()
    return PREFIX.pack(len(text), 0) + text


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"a header that is no JSON: {text[:80]!r}") from error
    if not isinstance(header, dict):
        raise Malformed(f"a header that is no object: {text[:80]!r}")
    return header


def introduced_pair(
    kind: socket.SocketKind = socket.SOCK_STREAM,
) -> tuple[socket.socket, socket.socket]:
    """A socket pair whose first end must ask `sender` before anything else."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, kind)
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return mine, theirs


def sender(sock: socket.socket, deadline: float) -> int:
    """Process id of whoever sent the first byte, as numbered here; the kernel vouches for it.

    Raises Closed or Late.
    """
    sock.settimeout(max(deadline - time.monotonic(), 0.001))
    try:
        data, found, _, _ = sock.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size))
    except TimeoutError as error:
        raise Late from error
    except OSError as error:
        raise Closed(str(error)) from error
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    if not data or not found:
        raise Closed("end of stream")
    pid: int = CREDENTIALS.unpack(found[0][2])[0]
    return pid


def close_all_but(keep: Sequence[int]) -> None:
    """Closes every inherited descriptor except `keep`."""
    low = 0
    for fd in sorted(keep):
        if fd > low:  # closerange(0, 0) closes everything (Python 3.11)
            os.closerange(low, fd)
        low = fd + 1
    with contextlib.suppress(OSError):
        os.closerange(low, 1 << 16)
