"""A controller's link to a host's resident: requests out, answers back, made anew when it breaks.

paramiko's time-outs do not always time out, so nothing here waits for it: requests are handed to a
thread, answers are futures with our own deadlines, and a link that has been silent is closed.
"""

import asyncio
import json
import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from data.errors import MachineError
from targets.machines.stream import Lines, Stream

CONNECT_S = 20.0
PING_S = 5.0
SILENT_S = 15.0
"""Three pings without an answer: the link is dead whatever TCP says."""
LOST_S = 90.0
"""How long a link that worked is sought again; a cut cable or a restarted sshd takes less."""
PAUSE_S = 1.0
CLOSE_S = 2.0
SLACK_S = 4.0
"""Above a request's deadline: the host must be the first to say that time is up."""

_LOG = logging.getLogger("kforge.machines")

Connect = Callable[[float], Stream]
"""A stream to the resident, ready for requests, within so many seconds. MachineError."""


@dataclass(slots=True)
class Request:
    """What was asked and is not answered yet."""

    op: str
    args: Mapping[str, Any]
    answer: Future[Any] = field(default_factory=Future)
    sent: bool = False


class Link:
    """Shared by threads and event loops; a thread of its own keeps it up while it is wanted."""

    def __init__(self, name: str, connect: Connect) -> None:
        self.name, self._connect = name, connect
        self._client = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._waiting: dict[int, Request] = {}
        self._number = 0
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stream: Stream | None = None
        self._keeper: threading.Thread | None = None
        self._sender: threading.Thread | None = None
        self._over = threading.Event()
        self.trouble = ""
        """Why there is no link now; empty when there is one."""

    async def ask(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        """The answer's value. MachineError names the host and the cause, within the deadline + 5 s.

        A request that was sent when the link broke is sent again, marked as resumed.
        """
        number, request = self._send(op, args)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(request.answer), deadline_s + SLACK_S)
        except TimeoutError:
            why = self.trouble or f"{op!r} did not end"
            raise MachineError(f"{self.name}: {why} within {deadline_s:.0f} s") from None
        finally:
            self._waiting.pop(number, None)

    def tell(self, op: str, args: Mapping[str, Any]) -> None:
        """Asks without waiting, if there is a link; orders that nobody takes are no loss."""
        if self._stream is not None:
            self._send(op, args)

    def close(self) -> None:
        """Ends the link when what was said has been sent; what still waits fails."""
        self._outbox.put(None)
        if self._sender is not None:
            self._sender.join(CLOSE_S)
        self._over.set()
        self._drop()
        with self._lock:
            keeper = self._keeper
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join(CLOSE_S)

    def _send(self, op: str, args: Mapping[str, Any]) -> tuple[int, Request]:
        request = Request(op, args)
        with self._lock:
            self._number += 1
            number = self._number
            self._waiting[number] = request
            self._over.clear()
            if self._keeper is None:
                self.trouble = "still connecting"
                self._keeper = threading.Thread(target=self._keep, name="kforge-link", daemon=True)
                self._keeper.start()
            elif self._stream is not None:
                self._outbox.put(_line(number, request))
                request.sent = True
        return number, request

    def _keep(self) -> None:
        """In its own thread: connects, serves, connects again; ends when nobody is served."""
        try:
            self._keep_up()
        except Exception as error:  # noqa: BLE001 (the thread's edge: whoever waits has to know)
            self._fail(error)

    def _keep_up(self) -> None:
        heard: float | None = None
        while not self._over.is_set():
            try:
                stream = self._connect(CONNECT_S)
            except MachineError as error:
                self.trouble = str(error)
                if not self._again(error, heard):
                    return
                continue
            heard = heard or time.monotonic()
            latest = self._serve(stream)
            with self._lock:
                if not self._waiting:
                    self._keeper = None
                    return
            silent = latest is None and not self._over.is_set()  # it let us in and said nothing
            if silent and not self._again(MachineError(f"{self.name}: {self.trouble}"), heard):
                return
            heard = latest or heard
        self._fail(MachineError(f"{self.name}: the link was closed"))

    def _again(self, error: MachineError, heard: float | None) -> bool:
        """Whether to try once more; if not, all that wait have failed and the keeper is free."""
        wanted = error.retryable and heard is not None and time.monotonic() - heard < LOST_S
        if wanted and self._waiting:
            self._over.wait(PAUSE_S)
            return True
        self._fail(error)
        return False

    def _serve(self, stream: Stream) -> float | None:
        """Carries requests and answers until the link ends; when an answer came last, if any."""
        self._outbox = queue.SimpleQueue()
        self._outbox.put(json.dumps({"client": self._client}).encode() + b"\n")
        with self._lock:
            self._stream, self.trouble = stream, ""
            for number, request in self._waiting.items():
                self._outbox.put(_line(number, request))
                request.sent = True
        writer = threading.Thread(
            target=_write, args=(stream, self._outbox), name="kforge-sender", daemon=True
        )
        writer.start()
        self._sender = writer  # after it began: `close` joins it
        heard = self._read(Lines(stream))
        self._outbox.put(None)
        self._drop()
        writer.join(SILENT_S)
        return heard

    def _read(self, lines: Lines) -> float | None:
        since, heard = time.monotonic(), None
        while not self._over.is_set():
            try:
                line = lines.next(PING_S)
            except (OSError, EOFError, ValueError) as error:
                self.trouble = f"the link broke: {error or 'closed by the host'}"
                break
            if line is not None:
                heard = time.monotonic()
                self._deliver(line)
            elif time.monotonic() - (heard or since) > SILENT_S:
                self.trouble = f"no answer since {SILENT_S:.0f} s"
                break
            else:
                self._outbox.put(b'{"id": 0, "op": "ping", "args": {}}\n')
        if self.trouble and not self._over.is_set():
            _LOG.warning("%s: %s", self.name, self.trouble)
        return heard

    def _deliver(self, line: bytes) -> None:
        answer = json.loads(line)
        request = self._waiting.pop(answer["id"], None)
        if request is None or not request.answer.set_running_or_notify_cancel():
            return
        if answer["ok"]:
            request.answer.set_result(answer["value"])
        else:
            request.answer.set_exception(MachineError(f"{self.name}: {answer['error']}"))

    def _fail(self, error: Exception) -> None:
        with self._lock:
            lost, self._waiting = list(self._waiting.values()), {}
            self._keeper = None
        for request in lost:
            if request.answer.set_running_or_notify_cancel():
                request.answer.set_exception(error)

    def _drop(self) -> None:
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _line(number: int, request: Request) -> bytes:
    args = {**request.args, "resumed": True} if request.sent else dict(request.args)
    return json.dumps({"id": number, "op": request.op, "args": args}).encode() + b"\n"


def _write(stream: Stream, outbox: "queue.SimpleQueue[bytes | None]") -> None:
    """In its own thread: a full window must not hold up whoever asks."""
    with suppress(OSError, ValueError, EOFError):
        while (data := outbox.get()) is not None:
            stream.write(data)
