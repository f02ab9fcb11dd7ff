"""The machine at hand: plain subprocesses, one judge server, leases by lock files."""

import asyncio
import fcntl
import json
import logging
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePath
from typing import Any

from data.codec import decode, encode
from data.errors import MachineError
from data.records import (
    Admission,
    BuildResult,
    Contract,
    Device,
    MeasureJob,
    Operator,
    RunResult,
)
from targets.machines.base import Completed
from targets.machines.judge_server import JudgeServer, ServerDied
from targets.remote.peaks import Probe

PROBE_S = 180.0
"""Includes the server's start: importing torch takes 1.4 s idle and 14 s under load."""
ADMIT_S = 300.0
BUILD_S = 180.0
MEASURE_SLACK_S = 60.0
"""Above the job's own deadline: the judge must be the first to say that time is up."""
POLL_S = 0.05
REPORT_S = 10.0

_LOG = logging.getLogger("kforge.machines")


class LocalMachine:
    """The host that KForge itself runs on; usable from any thread and any event loop."""

    name = "local"

    def __init__(self, cache: Path, *, locks: Path | None = None) -> None:
        self._cache = cache.resolve()
        self._locks = locks or Path(tempfile.gettempdir(), f"kforge-{os.getuid()}", "locks")
        self._server: JudgeServer | None = None
        self._starting = threading.Lock()
        self._queues: dict[tuple[int, str], asyncio.Lock] = {}

    async def run(self, command: tuple[str, ...], deadline_s: float) -> Completed:
        """Runs a command in a process group of its own; MachineError when it is not there."""
        return await asyncio.to_thread(_run, command, deadline_s)

    async def put(self, here: Path, there: PurePath) -> None:
        """Copies a file; MachineError when either place cannot be used."""
        await asyncio.to_thread(_copy, here, Path(there))

    async def get(self, there: PurePath, here: Path) -> None:
        """Copies a file; MachineError when either place cannot be used."""
        await asyncio.to_thread(_copy, Path(there), here)

    @asynccontextmanager
    async def lease(self, device: Device) -> AsyncIterator[None]:
        """Exclusive use of the device on this host; waits, and says every 10 s for whom.

        The lock file is the truth; before it the pairs of this process queue, first come first
        served, since whoever polls a file is starved by who lets go and asks again at once.
        """
        path = _lock_folder(self._locks) / f"{device.target}-{device.index}.lock"
        async with self._queue(path.name):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                await _lock(handle, device.name)
                os.truncate(handle, 0)
                os.pwrite(handle, json.dumps({"pid": os.getpid()}).encode(), 0)
                yield
            finally:
                os.close(handle)

    def _queue(self, name: str) -> asyncio.Lock:
        """The queue of a device; an asyncio lock belongs to the loop that waits for it."""
        return self._queues.setdefault((id(asyncio.get_running_loop()), name), asyncio.Lock())

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """The server's answer; a server that died is started again, once a request."""
        try:
            return await (await self._running()).ask(op, args, deadline_s)
        except ServerDied as error:
            _LOG.warning("%s; started again", error)
        return await (await self._running()).ask(op, args, deadline_s)

    async def probe(self, device: Device) -> Probe:
        """Measured peaks of the device and the environment of its numbers."""
        probe: Probe = decode(Probe, await self.judge("probe", {"device": device}, PROBE_S))
        return probe

    async def admit(self, operator: Operator, contract: Contract, device: Device) -> Admission:
        """Whether the operator can tell right from wrong, its shapes and its floor."""
        args = {"operator": operator, "contract": contract, "device": device}
        admission: Admission = decode(Admission, await self.judge("admit", args, ADMIT_S))
        return admission

    async def build(self, operator: Operator, candidate_source: str, language: str) -> BuildResult:
        """The compiler's word on a candidate; one that does not build is a value."""
        args = {
            "operator": operator,
            "candidate_source": candidate_source,
            "language": language,
        }
        result: BuildResult = decode(BuildResult, await self.judge("build", args, BUILD_S))
        return result

    async def measure(self, job: MeasureJob) -> RunResult:
        """The evidence on a built candidate; hold the device's lease meanwhile."""
        deadline_s = job.deadline_s + MEASURE_SLACK_S
        result: RunResult = decode(RunResult, await self.judge("measure", encode(job), deadline_s))
        return result

    def close(self) -> None:
        """Ends the judge server and all its children."""
        with self._starting:
            if self._server is not None:
                self._server.close()
                self._server = None

    async def _running(self) -> JudgeServer:
        return await asyncio.to_thread(self._start)

    def _start(self) -> JudgeServer:
        with self._starting:
            if self._server is not None and not self._server.alive:
                self._server.close()
                self._server = None
            if self._server is None:
                self._server = JudgeServer(self._cache)
            return self._server


def _run(command: tuple[str, ...], deadline_s: float) -> Completed:
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise MachineError(f"cannot run {command[0]!r} on this machine: {error.strerror}") from None
    timed_out = False
    try:
        out, err = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    seconds = time.monotonic() - started
    return Completed(
        code=process.returncode, out=out, err=err, seconds=seconds, timed_out=timed_out
    )


def _copy(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    except OSError as error:
        raise MachineError(f"cannot copy {source} to {target}: {error.strerror}") from None


def _lock_folder(folder: Path) -> Path:
    """A folder that is ours alone: in a shared one another user could hold every device."""
    for path in (folder.parent, folder):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
        if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
            raise MachineError(f"the lock folder {path} belongs to somebody else: remove it")
    return folder


async def _lock(handle: int, device: str) -> None:
    """Waits for the lock without blocking the event loop."""
    started = reported = time.monotonic()
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            await asyncio.sleep(POLL_S)
        if time.monotonic() - reported > REPORT_S:
            reported = time.monotonic()
            holder = os.pread(handle, 100, 0).decode(errors="replace")
            _LOG.info("waiting for %s since %.0f s; held by %s", device, reported - started, holder)
