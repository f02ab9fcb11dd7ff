"""A machine of the cloud: started when it is needed, ended when it is not, reached through SSH.

Whatever happens here, `close` ends the instance; what a killed controller leaves behind is found by
its tags (`cloud.strays`).
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePath
from typing import Any

from data.errors import MachineError
from data.records import Device
from targets.machines import cloud
from targets.machines.base import Completed, Machine
from targets.machines.cloud import Instance, Wanted
from targets.machines.judged import Judged

START_S = 600.0
"""From the order until SSH answers: a large GPU instance took minutes."""
ANSWER_S = 20.0
IDLE_S = 600.0
LOOK_S = 5.0

_LOG = logging.getLogger("kforge.machines")

Reach = Callable[[str, tuple[str, ...]], Machine]
"""The machine at an address that must show one of these host keys (`TYPE BASE64`)."""


class Ec2Machine(Judged):
    """Usable from any thread and any event loop; the instance is shared by all that ask."""

    def __init__(
        self, wanted: Wanted, reach: Reach, *, idle_s: float = IDLE_S, start_s: float = START_S
    ) -> None:
        self.name = wanted.name
        self._wanted, self._reach = wanted, reach
        self._idle_s, self._start_s = idle_s, start_s
        self._lock = threading.Lock()
        self._instance: Instance | None = None
        self._machine: Machine | None = None
        self._users, self._used = 0, time.monotonic()
        self._closed = threading.Event()

    async def run(self, command: tuple[str, ...], deadline_s: float) -> Completed:
        """As the machine behind it."""
        async with self._use() as machine:
            return await machine.run(command, deadline_s)

    async def put(self, here: Path, there: PurePath) -> None:
        """As the machine behind it."""
        async with self._use() as machine:
            await machine.put(here, there)

    async def get(self, there: PurePath, here: Path) -> None:
        """As the machine behind it."""
        async with self._use() as machine:
            await machine.get(there, here)

    @asynccontextmanager
    async def lease(self, device: Device) -> AsyncIterator[None]:
        """As the machine behind it, which does not end meanwhile."""
        async with self._use() as machine, machine.lease(device):
            yield

    @asynccontextmanager
    async def turn(self, device: Device) -> AsyncIterator[None]:
        """As the machine behind it, which does not end meanwhile."""
        async with self._use() as machine, machine.turn(device):
            yield

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """As the machine behind it."""
        async with self._use() as machine:
            return await machine.judge(op, args, deadline_s)

    def close(self) -> None:
        """Ends the instance; whoever asks starts another. MachineError if it lives on."""
        self._closed.set()
        with self._lock:
            self._end()

    @asynccontextmanager
    async def _use(self) -> AsyncIterator[Machine]:
        """The started machine, which is not idle while the context is open."""
        starting = asyncio.ensure_future(asyncio.to_thread(self._started))
        try:
            machine = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._closed.set()  # whoever waits for the start stops waiting and ends it
            await asyncio.wait({starting})
            await asyncio.to_thread(self.close)
            raise
        with self._lock:
            self._users += 1
        try:
            yield machine
        except MachineError:
            await asyncio.to_thread(self._bury, machine)
            raise
        finally:
            with self._lock:
                self._users -= 1
                self._used = time.monotonic()

    def _started(self) -> Machine:
        with self._lock:
            if self._machine is None:
                self._closed = threading.Event()
                self._machine = self._start()
                self._used = time.monotonic()
                threading.Thread(target=self._watch, args=(self._closed,), daemon=True).start()
            return self._machine

    def _start(self) -> Machine:
        """Started and answering; ended again when it does not."""
        ec2 = cloud.client(self._wanted.region)
        until = time.monotonic() + self._start_s
        self._instance = cloud.start(ec2, self._wanted)
        _LOG.info("%s: started %s", self.name, self._instance.id)
        try:
            self._instance = cloud.reached(ec2, self._instance, until)
            keys = cloud.host_keys(ec2, self._wanted, self._instance.id, until)
            place = self._instance.id if self._wanted.ssm else self._instance.host
            machine = self._reach(place, keys)
            self._answering(machine, until)
        except BaseException:
            self._end()
            raise
        return machine

    def _bury(self, machine: Machine) -> None:
        """Forgets an instance that the cloud took back: whoever asks next starts another."""
        with self._lock, suppress(MachineError):
            instance = self._instance if self._machine is machine else None
            if instance is None or cloud.lives(cloud.client(self._wanted.region), instance.id):
                return
            _LOG.warning("%s: %s was ended by the cloud", self.name, instance.id)
            self._closed.set()
            self._end()

    def _answering(self, machine: Machine, until: float) -> None:
        """Asks until the host answers: SSH comes up after the instance."""
        said = "it was not asked"
        while time.monotonic() < until and not self._closed.is_set():
            try:
                asyncio.run(machine.run(("true",), ANSWER_S))
            except MachineError as error:
                said = str(error)
                self._closed.wait(LOOK_S)
            else:
                return
        machine.close()
        raise MachineError(f"{self.name} did not answer within {self._start_s:.0f} s: {said}")

    def _watch(self, closed: threading.Event) -> None:
        """Ends the instance when nobody used it for long, or when its hours are over."""
        over = time.monotonic() + self._wanted.hours * 3600.0
        while not closed.wait(min(LOOK_S, self._idle_s / 4)):
            with self._lock:
                idle = not self._users and time.monotonic() - self._used > self._idle_s
                if idle or time.monotonic() > over:
                    _LOG.info("%s: %s", self.name, "idle" if idle else "its hours are over")
                    closed.set()
                    self._end()

    def _end(self) -> None:
        """Lets go of the host and ends the instance; the lock is held."""
        machine, self._machine = self._machine, None
        instance, self._instance = self._instance, None
        try:
            if machine is not None:
                machine.close()
        finally:
            if instance is not None:
                cloud.end(cloud.client(self._wanted.region), instance.id, self._wanted.after)
                _LOG.info("%s: %s: told to %s", self.name, instance.id, self._wanted.after)


def reap(name: str, region: str) -> list[str]:
    """Ends what killed controllers left running for a machine; one line each. MachineError."""
    told = []
    ec2 = cloud.client(region)
    for stray in cloud.strays(ec2, name):
        after = cloud.After(stray.tags.get(cloud.AFTER, cloud.After.STOP))
        cloud.end(ec2, stray.id, after)
        told.append(f"{stray.id} in {region}: told to {after}")
    return told
