"""One forked process: how to reach it, hold it still and end it."""

import contextlib
import os
import signal
import threading
import time
import uuid
from dataclasses import dataclass

from data.errors import MachineError
from targets.remote import processes
from targets.remote.cgroup import PREFIX, Group
from targets.remote.channel import Channel, ChannelError
from targets.remote.drain import Drain
from targets.remote.ladder import Rung
from targets.remote.sandbox import Limits

GONE_S = 10.0
"""A killed process waits for its device at most this long."""
LOOKS_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """What is known of a child that waits for its limits; process ids as the judge counts."""

    pid: int
    keeper: int
    rung: Rung
    user: int
    room: str
    """Its private folder where it has no file system of its own."""


class Child:
    """One forked process: how to reach it, hold it still and end it."""

    def __init__(self, birth: Birth, channel: Channel, control: Channel) -> None:
        self.pid, self.channel = birth.pid, channel
        self._birth, self._control = birth, control
        self._handle = os.pidfd_open(birth.pid)
        self._namespace = processes.namespace(birth.pid)
        self._excess = ""
        self._killed_for_memory = False
        self._signalled = False
        """Stopped by signals, perhaps beside its group."""
        self._ended: int | None = None

    @property
    def home(self) -> str:
        """Its private folder, as this host reaches it while the child lives."""
        return self._birth.room or f"/proc/{self.pid}/root/tmp"

    @property
    def isolation(self) -> str:
        """The rung, and whether the kernel bounds memory and processes."""
        return f"{self._birth.rung}+cgroup" if self._group.complete else self._birth.rung

    @property
    def user(self) -> int:
        """User id of the child on this host."""
        return self._birth.user

    def admit(self, limits: Limits, drain: Drain) -> None:
        """Limits are laid round the child while it still waits; only then it may start."""
        self._drain = drain
        self._group = Group(f"{PREFIX}{uuid.uuid4().hex[:12]}", limits, self.pid)
        if not self._group.complete or not self._birth.rung.namespaces:
            threading.Thread(target=self._watch, args=(limits,), daemon=True).start()
        try:
            self.channel.send({"op": "enclose"})
            self.channel.receive(time.monotonic() + 60.0)
        except ChannelError as error:
            why = "; ".join(filter(None, (str(error), self.end(), self.log().strip())))
            raise MachineError(f"a child could not be shut in: {why}") from error

    def processes(self) -> list[int]:
        """The child and all its descendants, in the judge's numbering."""
        found = self._group.processes()
        if found is not None:
            return found
        if self._birth.rung.namespaces:
            return [p for p in processes.everyone() if processes.namespace(p) == self._namespace]
        return processes.descendants(self._birth.keeper)[1:]

    def freeze(self) -> None:
        """Stops every thread of every process and waits until all stand still."""
        if self._group.freeze(on=True):
            return
        self._signalled = True  # also where the group stands still a moment later
        for _ in range(200):
            running = [p for p in self.processes() if not processes.stopped(p)]
            if not running:
                return
            for p in running:
                processes.send(p, signal.SIGSTOP)
            time.sleep(0.0005)

    def thaw(self) -> None:
        """All go on, however they were stopped: under load a group is late, and both ways count."""
        thawed = self._group.freeze(on=False)
        if self._signalled or not thawed:
            self._signalled = False
            for p in self.processes():
                processes.send(p, signal.SIGCONT)

    def cpu_ns(self) -> int:
        """Processor time of all its threads so far, nanoseconds."""
        counted = self._group.cpu_ns()
        return sum(map(processes.cpu_ns, self.processes())) if counted is None else counted

    def kill(self) -> None:
        if self._ended is not None:
            return  # its handle is closed, and its number may be another child's by now
        with contextlib.suppress(OSError):  # it may have ended before
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        self._group.kill()

    def end(self) -> str:
        """Kills what is left and says how the child ended; empty when it was we who killed it.

        Raises MachineError when something of it cannot be killed.
        """
        if self._ended is None:
            self._ended = self._status(time.monotonic() + 0.3)
            killed = self._ended is None
            if killed:
                self.kill()
                self._ended = self._status(time.monotonic() + GONE_S)
            self._said = self._excess or ("" if killed else _how(self._ended or 0))
            self._ended = self._ended or 0  # once, even when nobody told a status
            self._drain.join()
            self._oom = self._killed_for_memory or self._group.out_of_memory()
            left = self._survivors()
            self._group.close()
            for channel in (self._control, self.channel):
                channel.close()
            os.close(self._handle)
            if left:
                raise MachineError(f"processes {left} of a candidate cannot be killed: reboot")
        return self._said

    def out_of_memory(self) -> bool:
        """Whether it was killed for its memory; known after `end`."""
        return self._oom

    def log(self) -> str:
        return self._drain.text()

    def _status(self, deadline: float) -> int | None:
        """The wait status that the keeper reports when nothing of the child is left."""
        try:
            return int(self._control.receive(deadline).header["status"])
        except (ChannelError, KeyError):
            return None

    def _survivors(self) -> list[int]:
        """What is still there although all was killed."""
        deadline = time.monotonic() + GONE_S
        while left := self.processes():
            if time.monotonic() > deadline:
                break
            self._group.kill()
            for p in left:
                processes.send(p, signal.SIGKILL)
            time.sleep(0.002)
        return left

    def _watch(self, limits: Limits) -> None:
        """Where the kernel does not hold: look twenty times a second, kill above a limit."""
        room = self._birth.room
        while self._ended is None and not self._excess:
            found = self.processes()
            if not self._group.limits_memory:
                # Forks share most of their pages: only the slow count is fair to them.
                self._killed_for_memory = all(
                    sum(map(count, found)) > limits.memory_bytes
                    for count in (processes.resident, processes.proportional)
                )
            if len(found) > limits.processes:
                self._excess = f"killed above {limits.processes} processes"
            elif room and processes.disk_bytes(room, limits.tmpfs_bytes) > limits.tmpfs_bytes:
                self._excess = f"killed above {limits.tmpfs_bytes >> 20} MiB of files"
            if self._killed_for_memory or self._excess:
                self.kill()
                return
            time.sleep(LOOKS_S)


def _how(status: int) -> str:
    """A wait status in words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(number).name}"
        return f"killed by signal {number}"
    return f"exited with status {os.WEXITSTATUS(status)}"
