"""One function in one forked process: a crash, a leak or a thread pool stays there.

The parent must not have run a multi-threaded torch operation: a fork after one hangs in its first
parallel region.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from data.codec import encode
from data.errors import MachineError
from targets.remote.sandbox import die_with_parent

CHUNK = 1 << 20


@dataclass(slots=True)
class Fork:
    """A running child in a process group of its own, and what it has written so far."""

    pid: int
    reader: int
    """Descriptor that becomes readable when there is something and when the child has ended."""
    received: bytes = b""
    ended: bool = False

    def read(self) -> bool:
        """Takes what is there; False at the end."""
        chunk = os.read(self.reader, CHUNK)
        self.received += chunk
        return bool(chunk)

    def result(self) -> Any:
        """Plain data that the function returned; MachineError when it raised or died. Waits."""
        while self.read():
            pass
        status = self._collected()
        try:
            answer = json.loads(self.received)
        except ValueError:
            raise MachineError(f"a judge process {_ending(status)} before it answered") from None
        if "error" in answer:
            raise MachineError(answer["error"])
        return answer["value"]

    def end(self) -> None:
        """Waits for the child if nobody has: what it was about is of no interest any more."""
        if not self.ended:
            while self.read():
                pass
            self._collected()

    def _collected(self) -> int:
        """Its status; what is left of its group is killed."""
        os.close(self.reader)
        _, status = os.waitpid(self.pid, 0)
        kill_group(self.pid)
        self.ended = True
        return status


def fork(function: Callable[[], object]) -> Fork:
    """Runs the function in a child; its result must be a record or plain data."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        with suppress(OSError):  # on both sides: whoever is first, a kill finds the group
            os.setpgid(pid, pid)
        os.close(writer)
        return Fork(pid, reader)
    try:
        os.setpgid(0, 0)
        die_with_parent(parent)
        os.close(reader)
        _write_all(writer, _answer(function))
    finally:
        os._exit(0)


def kill_group(pid: int) -> None:
    """Kills what is left of a child's process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _answer(function: Callable[[], object]) -> bytes:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        return json.dumps({"value": encode(function())}).encode()
    except BaseException as error:  # noqa: BLE001 (the process edge: everything becomes an answer)
        traceback.print_exc()
        text = str(error)
        if not isinstance(error, MachineError):
            text = f"the judge itself failed: {type(error).__name__}: {text}"
        return json.dumps({"error": " ".join(text.split())}).encode()


def _write_all(writer: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(writer, view) :]


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
