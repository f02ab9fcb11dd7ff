"""One forked process: how to reach it, hold it still and end it."""

import contextlib
import os
import signal
import threading
import time
import uuid

from data.errors import MachineError
from targets.remote import processes, sandbox
from targets.remote.cgroup import Group
from targets.remote.channel import Channel, ChannelError
from targets.remote.drain import Drain
from targets.remote.sandbox import Limits


class Child:
    """One forked process: how to reach it, hold it still and end it."""

    def __init__(self, pid: int, channel: Channel, control: Channel, isolation: str) -> None:
        self.pid, self.channel, self.isolation = pid, channel, isolation
        self._control = control
        self._handle = os.pidfd_open(pid)
        self._namespace = processes.namespace(pid)
        self._killed_for_memory = False
        self._ended: int | None = None

    def admit(self, limits: Limits, drain: Drain) -> None:
        """Limits are laid round the child while it still waits; only then it may start."""
        self._drain = drain
        self._group = Group(f"kforge-{uuid.uuid4().hex[:12]}", limits)
        with contextlib.suppress(ProcessLookupError):  # then the channel says so below
            self._group.add(self.pid)
        if not self._group.limits_memory:
            watch = threading.Thread(target=self._watch, args=(limits.memory_bytes,), daemon=True)
            watch.start()
        try:
            self.channel.send({"op": "enclose"})
            self.channel.receive(time.monotonic() + 60.0)
        except ChannelError as error:
            log = self.end() or self.log()
            raise MachineError(f"a child could not be shut in: {error} {log}".strip()) from error

    def processes(self) -> list[int]:
        """The child and all its descendants, in the judge's numbering."""
        found = self._group.processes()
        if found is not None:
            return found
        if self.isolation == sandbox.UNSHARE:
            return [p for p in processes.everyone() if processes.namespace(p) == self._namespace]
        return processes.descendants(self.pid)

    def freeze(self) -> None:
        """Stops every thread of every process and waits until all stand still."""
        for _ in range(200):
            running = [p for p in self.processes() if not processes.stopped(p)]
            if not running:
                return
            for p in running:
                processes.send(p, signal.SIGSTOP)
            time.sleep(0.0005)

    def thaw(self) -> None:
        for p in self.processes():
            processes.send(p, signal.SIGCONT)

    def cpu_ns(self) -> int:
        """Processor time of all its threads so far, nanoseconds."""
        return sum(map(processes.cpu_ns, self.processes()))

    def kill(self) -> None:
        with contextlib.suppress(OSError):  # it may have ended before
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def end(self) -> str:
        """Kills what is left and says how the child ended; empty when it was we who killed it."""
        if self._ended is None:
            self._ended = self._status(time.monotonic() + 0.3)
            killed = self._ended is None
            if killed:
                self.kill()
                self._status(time.monotonic() + 10.0)
                self._ended = 0
            self._said = "" if killed else _how(self._ended or 0)
            self._drain.join()
            self._oom = self._killed_for_memory or self._group.out_of_memory()
            self._group.close()
            for channel in (self._control, self.channel):
                channel.close()
            os.close(self._handle)
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

    def _watch(self, limit: int) -> None:
        """Where no control group holds: look twenty times a second, kill above the limit."""
        while self._ended is None:
            if sum(map(processes.resident, self.processes())) > limit:
                self._killed_for_memory = True
                self.kill()
                return
            time.sleep(0.05)


def _how(status: int) -> str:
    """A wait status in words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(number).name}"
        return f"killed by signal {number}"
    return f"exited with status {os.WEXITSTATUS(status)}"
