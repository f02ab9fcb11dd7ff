"""Frames between judge and child."""

import os
import socket
import time
from collections.abc import Iterator

import pytest

from targets.remote.channel import PREFIX, Channel, Closed, Late, Malformed

Pair = tuple[Channel, Channel]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """The judge's end and the child's."""
    a, b = socket.socketpair()
    judge, child = Channel(a), Channel(b, takes_fds=True)
    yield judge, child
    judge.close()
    child.close()


def test_a_frame_arrives_whole_with_its_descriptor(pair: Pair) -> None:
    """Header, raw bytes and a descriptor cross in one piece."""
    judge, child = pair
    reading, writing = os.pipe()
    judge.send({"op": "x"}, b"\x00\xff", fds=(writing,))
    frame = child.receive(time.monotonic() + 1)
    assert (frame.header, frame.body) == ({"op": "x"}, b"\x00\xff")
    os.write(frame.fds[0], b"hi")
    assert os.read(reading, 2) == b"hi"
    for fd in (reading, writing, *frame.fds):
        os.close(fd)


@pytest.mark.parametrize(
    "junk",
    [
        b"[" * 50_000,
        b"\xff\xfe{}",
        b"[1]",
        b'{"a": ',
    ],
)
def test_what_is_no_header_is_malformed(pair: Pair, junk: bytes) -> None:
    """Deep nesting, wrong encoding, no object, cut off: none ends the judge."""
    judge, child = pair
    child.socket.sendall(PREFIX.pack(len(junk), 0) + junk)
    with pytest.raises(Malformed):
        judge.receive(time.monotonic() + 1)


def test_a_huge_frame_is_refused_before_it_is_read(pair: Pair) -> None:
    """Sizes are believed only up to a limit."""
    judge, child = pair
    child.socket.sendall(PREFIX.pack(10, 1 << 60))
    with pytest.raises(Malformed):
        judge.receive(time.monotonic() + 1)


def test_half_a_frame_is_late_and_an_end_is_closed(pair: Pair) -> None:
    """A child that stops in the middle cannot hold the judge."""
    judge, child = pair
    child.socket.sendall(b"\x01")
    with pytest.raises(Late):
        judge.receive(time.monotonic() + 0.05)
    child.close()
    with pytest.raises(Closed):
        judge.receive(time.monotonic() + 1)
