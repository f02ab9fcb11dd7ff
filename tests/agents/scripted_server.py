"""A scripted OpenAI-compatible server on loopback: stdlib only, one thread a connection.

Give it replies for the two agents, told apart by the first line of the system prompt. A reply is a
text, or a `Fault` that says how the server misbehaves instead. The last reply of a list repeats.
"""

import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

MARKERS = {
    "generator": "You are the generator of KForge",
    "analyst": "You are the analyst of KForge",
}
USAGE = {
    "prompt_tokens": 1200,
    "completion_tokens": 340,
    "total_tokens": 1540,
    "prompt_tokens_details": {"cached_tokens": 1000},
    "completion_tokens_details": {"reasoning_tokens": 40},
}


class Fault(StrEnum):
    """Ways to misbehave."""

    RATE_LIMITED = "429 with retry-after: 1"
    SERVER_ERROR = "500"
    REFUSED_KEY = "401"
    NOT_FOUND = "404"
    CONTEXT = "400 context length exceeded"
    STALL = "accepts and says nothing"
    DRIP = "a byte every 0.2 s"
    GARBAGE = "200 with HTML"
    CUT = "half of the promised body, then the end of the connection"
    WRONG_JSON = "200 with JSON of another shape"
    TRUNCATED = "half a block, finish_reason length"
    NULL = "content null, finish_reason length"
    THINK = "draft code in think tags, then nothing"
    NO_USAGE = "an answer without usage"


Said = str | Fault
Reply = Said | Callable[[str], str]
"""A function gets all texts of the prompt."""


@dataclass
class ScriptedServer:
    """Answers in order; counts requests and keeps their bodies. Use as a context manager."""

    generator: list[Reply] = field(default_factory=list)
    analyst: list[Reply] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of each request, names in lower case."""
    _served: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        outer = self

        class Handler(_Handler):
            @property
            def script(self) -> ScriptedServer:
                return outer

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5)

    @property
    def url(self) -> str:
        """What goes into `--api-base`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def count(self) -> int:
        return len(self.bodies)

    def prompts(self, role: str) -> list[str]:
        """All message texts of each request of the role, in order."""
        return [_texts(body) for body in self.bodies if _role(body) == role]

    def take(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        """The next reply for the request's role."""
        with self._lock:
            self.bodies.append(body)
            self.headers.append(headers)
            role = _role(body)
            replies = self.analyst if role == "analyst" else self.generator
            at = self._served.get(role, 0)
            self._served[role] = at + 1
            return replies[min(at, len(replies) - 1)] if replies else "nothing scripted"

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake when the server ends; whether it ended."""
        return self._over.wait(seconds)


def _texts(body: dict[str, Any]) -> str:
    return "\n".join(
        str(m["content"]) for m in [{"content": body.get("system", "")}, *body["messages"]]
    )


def _role(body: dict[str, Any]) -> str:
    text = _texts(body)
    return next((role for role, marker in MARKERS.items() if marker in text), "generator")


def closed_port() -> str:
    """An API base on loopback where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    @property
    def script(self) -> ScriptedServer:
        raise NotImplementedError

    def log_message(self, *_: object) -> None:
        """Silent: stderr belongs to the test."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = self.script.take(body, {k.lower(): v for k, v in self.headers.items()})
        if callable(reply):
            reply = reply(_texts(body))
        try:
            if self.path.endswith("/messages"):
                self._send(200, json.dumps(anthropic(reply, str(body.get("model")))).encode())
                return
            self._answer(reply, str(body.get("model")))
        except (BrokenPipeError, ConnectionResetError):
            return  # the client left at its deadline, as it should

    def _answer(self, reply: Said, model: str) -> None:
        match reply:
            case Fault.RATE_LIMITED:
                self._error(429, "rate_limit_exceeded", headers={"retry-after": "1"})
            case Fault.SERVER_ERROR:
                self._error(500, "server_error")
            case Fault.REFUSED_KEY:
                self._error(401, "invalid_api_key")
            case Fault.NOT_FOUND:
                self._error(404, "model_not_found")
            case Fault.CONTEXT:
                text = "This model's maximum context length is 4096 tokens. Reduce the prompt."
                self._error(400, "context_length_exceeded", message=text)
            case Fault.STALL:
                self.script.wait(30)
            case Fault.DRIP:
                self._drip()
            case Fault.CUT:
                whole = json.dumps(completion("an answer", model)).encode()
                self._send(200, whole[: len(whole) // 2], promised=len(whole))
            case Fault.GARBAGE:
                self._send(200, b"<html>It works!</html>", kind="text/html")
            case Fault.WRONG_JSON:
                self._send(200, b'{"message": "hello"}')
            case _:
                self._send(200, json.dumps(completion(reply, model)).encode())

    def _error(
        self, code: int, kind: str, *, message: str = "", headers: dict[str, str] | None = None
    ) -> None:
        key = self.headers.get("authorization", "")  # as careless providers do
        error = {
            "message": message or f"{kind} for {key}",
            "type": kind,
            "code": kind,
            "param": None,
        }
        self._send(code, json.dumps({"error": error}).encode(), headers=headers)

    def _send(
        self,
        code: int,
        body: bytes,
        *,
        kind: str = "application/json",
        headers: dict[str, str] | None = None,
        promised: int | None = None,
    ) -> None:
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(promised or len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "100")
        self.end_headers()
        for _ in range(100):
            self.wfile.write(b" ")
            if self.script.wait(0.2):
                return


_FAULTY: dict[str, tuple[str | None, str]] = {
    Fault.TRUNCATED: ("Here:\n```python\nclass ModelNew:\n    def forward(self", "length"),
    Fault.NULL: (None, "length"),
    Fault.THINK: ("<think>\n```python\nclass ModelNew: pass\n```\nlet me see", "stop"),
    Fault.NO_USAGE: ("```python\nclass ModelNew:\n    x = 1\n```", "stop"),
}


def anthropic(reply: Said, model: str) -> dict[str, Any]:
    """The same text as a server of Anthropic's form sends it."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": str(reply)}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 1000},
    }


def completion(reply: Said, model: str) -> dict[str, Any]:
    """The chat completion for a text or for a fault of the answer itself."""
    text, finish = _FAULTY.get(reply, (str(reply), "stop"))
    message = {"role": "assistant", "content": text}
    answer: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if reply is not Fault.NO_USAGE:
        answer["usage"] = USAGE
    return answer
