"""A machine that cannot be reached: jobs go into a folder, rows come back.

How the folder gets there is nobody's business here: it may be shared, copied by rsync or carried as
a tar file. Somebody starts `kforge-remote.pyz work DIR` where the device is. What lies in the
folder stands in `targets/remote/spool.py`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path, PurePath
from typing import Any, NoReturn

from data.codec import dumps, encode
from data.errors import MachineError
from data.records import Device, Pair
from targets.machines import archive
from targets.machines.base import Completed
from targets.machines.judged import Judged
from targets.remote.jobs import Ask, Job, digest
from targets.remote.spool import NEWEST, Spool

PATIENCE_S = 30.0
"""Without a sign of life: a worker beats every 5 s."""
LOOK_S = 1.0


class Waiting(MachineError):  # noqa: N818 (what happened)
    """Nobody works on the spool now; the same command goes on when somebody did."""


class SpoolMachine(Judged):
    """The controller's side of a spool for one device."""

    def __init__(
        self,
        device: Device,
        folder: Path,
        *,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = device.machine
        self.device = device
        self.spool = Spool(folder)
        self._patience_s, self._clock = patience_s, clock
        self._sign = clock()
        self._expected: dict[str, tuple[Job, int]] = {}
        """By request: the job that holds it, and its place there."""

    async def run(self, command: tuple[str, ...], deadline_s: float) -> Completed:
        """MachineError: a spool takes jobs for the judge only."""
        del deadline_s
        self._unable(f"run {command[0]!r}")

    async def put(self, here: Path, there: PurePath) -> None:
        """MachineError, as `run`."""
        self._unable(f"take {here} to {there}")

    async def get(self, there: PurePath, here: Path) -> None:
        """MachineError, as `run`."""
        self._unable(f"give {there} for {here}")

    @asynccontextmanager
    async def lease(self, device: Device) -> AsyncIterator[None]:
        """Nothing to wait for here: the worker holds the lease, on the device's own host."""
        del device
        yield

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """The answer as it came back; Waiting when nobody works. The deadline is the worker's."""
        del deadline_s
        ask = Ask(op=op, args=encode(args))
        job, number = self._expected.get(_key(ask)) or (self._post((ask,)), 0)
        while len(rows := self.spool.rows(job)) <= number:
            self.check()
            await asyncio.sleep(LOOK_S)
        return rows[number].answer

    def expect(self, asks: Sequence[Ask]) -> None:
        """Posts what will be asked at once, a job an operator: none waits for another's answer."""
        jobs: dict[str, list[Ask]] = {}
        for ask in asks:
            jobs.setdefault(dumps(ask.args["operator"]), []).append(ask)
        for together in jobs.values():
            job = self._post(tuple(together))
            self._expected |= {_key(ask): (job, n) for n, ask in enumerate(together)}

    def close(self) -> None:
        """Nothing was started."""

    def pair(self, pair: Pair) -> Job:
        """The job that ports the pair there, posted unless it is."""
        return self.post(Job(archive=archive.identity(), device=pair.device, pair=pair))

    def _post(self, asks: tuple[Ask, ...]) -> Job:
        subject = str(asks[0].args.get("operator", {}).get("name", asks[0].op))
        own = archive.identity()
        return self.post(Job(archive=own, device=self.device, asks=asks, subject=subject))

    def post(self, job: Job) -> Job:
        """Puts the job there, and the archive that does it. MachineError for the disk."""
        archive.put(self.spool.folder, NEWEST)
        self.spool.post(job)
        return job

    def check(self) -> None:
        """Waiting when nobody has shown a sign of life for long."""
        if any(self.spool.claims.alive(name) for name in self.spool.ids()):
            self._sign = self._clock()
        if self._clock() - self._sign > self._patience_s:
            raise Waiting(
                f"nobody works on the spool {self.spool.folder}: run `python3 {NEWEST} work .` in"
                f" it where {self.device.name} is (docs/spool.md), then the same command again"
            )

    def _unable(self, what: str) -> NoReturn:
        raise MachineError(
            f"machine {self.name!r} is a spool: it cannot {what}; it takes jobs only"
        )


def _key(ask: Ask) -> str:
    return digest(dumps(ask))
