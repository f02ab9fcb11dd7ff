"""The client of one judge server process: numbered requests out, answers matched by number."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from data.codec import encode
from data.errors import MachineError
from targets.remote import lease

ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = (
    *("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV", "OMP_NUM_THREADS"),
    *("KFORGE_ISOLATION", "KFORGE_BUBBLEWRAP"),
)
"""All that the server gets of our environment: secrets stay here."""
QUIET = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Idle threads of the judge must not spin while a candidate is timed; children do not get it."""
STOP_S = 5.0
TAIL = 400


class ServerDied(MachineError):  # noqa: N818 (what happened)
    """The process ended before it answered."""


class JudgeServer:
    """A running `python -m targets.remote.serve`; threads and event loops may share it."""

    def __init__(self, cache: Path) -> None:
        cache.mkdir(parents=True, exist_ok=True)
        self._log = cache / "judge.log"
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._number = 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "targets.remote.serve", "--cache", str(cache)],
                cwd=ROOT,
                env={
                    **{k: os.environ[k] for k in PASSED_ON if k in os.environ},
                    **QUIET,
                    **_mark(),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, name="judge-answers", daemon=True)
        self._reader.start()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    async def ask(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """The value of the answer. Raises MachineError; ServerDied when asking again may help.

        When the caller is cancelled or the deadline passes, the job is killed.
        """
        number, answer = self._reserve()
        try:
            await asyncio.to_thread(self._write, number, op, args)
            return await asyncio.wait_for(asyncio.wrap_future(answer), deadline_s)
        except TimeoutError:
            self._cancel(number)
            raise MachineError(f"the judge did not end {op!r} within {deadline_s:.0f} s") from None
        except asyncio.CancelledError:
            self._cancel(number)
            raise

    def close(self) -> None:
        """Ends the server with all that it started: by end of input, then by force."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(STOP_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _reserve(self) -> tuple[int, Future[Any]]:
        answer: Future[Any] = Future()
        with self._lock:
            self._number += 1
            self._waiting[self._number] = answer
            return self._number, answer

    def _write(self, number: int, op: str, args: Mapping[str, Any]) -> None:
        """Sends a request unless it was cancelled; blocks while the server is still importing."""
        data = json.dumps({"id": number, "op": op, "args": encode(args)}).encode() + b"\n"
        with self._sending:
            if number not in self._waiting:
                return
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(data)
                self._process.stdin.flush()
            except (OSError, ValueError):
                self._waiting.pop(number, None)
                raise ServerDied(self._ending()) from None
        if not self.alive:
            self._fail_all()

    def _cancel(self, number: int) -> None:
        """Has the job killed, without waiting for it."""
        self._waiting.pop(number, None)
        order, _ = self._reserve()
        threading.Thread(
            target=self._cancel_now, args=(order, number), name="judge-cancel", daemon=True
        ).start()

    def _cancel_now(self, order: int, number: int) -> None:
        with suppress(ServerDied):
            self._write(order, "cancel", {"id": number})

    def _read(self) -> None:
        """In its own thread: hands each answer to whoever waits for it."""
        assert self._process.stdout is not None
        with suppress(ValueError, OSError):
            for line in self._process.stdout:
                self._deliver(line)
        self._process.wait()
        self._fail_all()

    def _deliver(self, line: bytes) -> None:
        answer = json.loads(line)
        waiting = self._waiting.pop(answer["id"], None)
        if waiting is None or not waiting.set_running_or_notify_cancel():
            return
        if answer["ok"]:
            waiting.set_result(answer["value"])
        else:
            waiting.set_exception(MachineError(answer["error"]))

    def _fail_all(self) -> None:
        with self._lock:
            lost, self._waiting = list(self._waiting.values()), {}
        for answer in lost:
            if answer.set_running_or_notify_cancel():
                answer.set_exception(ServerDied(self._ending()))

    def _ending(self) -> str:
        """Exit status and the last line that it printed."""
        lines = self._log.read_bytes()[-TAIL:].decode(errors="replace").strip().splitlines()
        said = f": {lines[-1]}" if lines else ""
        return f"the judge server ended with status {self._process.poll()}{said} ({self._log})"


def _mark() -> dict[str, str]:
    """In the environment of the server: whoever takes over a dead holder's lease finds it."""
    return {lease.HOLDER: lease.mark()}
