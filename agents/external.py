"""A command in an agent's role: it gets the prompt on stdin and prints the reply on stdout.

So a coding agent, a script or a person can write kernels or read profiles. The command runs in a
session of its own, has a deadline by the clock, and is killed with all that it started.
"""

import asyncio
import json
import os
import shlex
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.author import COMMAND
from agents.budget import Budget
from agents.images import Image
from agents.llm import Message
from agents.redaction import redact
from agents.wire import UNTOUCHED
from data.errors import ModelError
from data.records import LlmCall, digest

MOST_BYTES = 1 << 20
"""Of a reply; the parser takes half of it, and a command that never stops must not fill memory."""
SAID = 300
"""Characters of its last words on stderr that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program and its arguments, without a shell."""

    line: str
    deadline_s: float
    budget: Budget | None = None

    @property
    def name(self) -> str:
        """What rows call it: the program alone, since arguments may say too much."""
        return f"{COMMAND}/{Path(shlex.split(self.line)[0]).name}"

    async def ask(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        response_format: dict[str, Any] | None = None,
        images: Sequence[Image] = (),
    ) -> LlmCall:
        """The reply of one run, which gets no pictures.

        ModelError when it fails, is not there or exceeds its deadline.
        """
        del response_format, images
        prompt = redact(as_text(messages))
        hold = self.budget.reserve(None) if self.budget else None
        started, clock = datetime.now(UTC), time.monotonic()
        reply = await self._reply(role, prompt)
        if hold:
            hold.settle(0.0)
        return LlmCall(
            role=role,
            model=self.name,
            prompt_hash=digest(self.line, prompt),
            prompt=json.dumps([{**m, "content": redact(m["content"])} for m in messages]),
            reply=redact(reply),
            reasoning=None,
            finish_reason="stop",
            parse_status=UNTOUCHED,
            prompt_tokens=None,
            cached_tokens=None,
            completion_tokens=None,
            reasoning_tokens=None,
            usage="{}",
            seconds=time.monotonic() - clock,
            started_at=started.isoformat(timespec="seconds"),
        )

    async def _reply(self, role: str, prompt: str) -> str:
        process = await self._started(role)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(self.deadline_s):
                reply, said, _ = await asyncio.gather(
                    _read(process.stdout), _read(process.stderr), _feed(process, prompt)
                )
                status = await process.wait()
        except TimeoutError:
            raise ModelError(
                f"{self.name} gave no reply within {self.deadline_s:.0f} s (command_deadline_s)"
            ) from None
        finally:
            _kill(process)
            # wait() waits for the pipes' ends too, which an unread one never comes to.
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
            await process.wait()
        if status != 0:
            words = " ".join(redact(said.decode(errors="replace")).split())[-SAID:]
            raise ModelError(f"{self.name} ended with status {status}: {words or 'no message'}")
        return reply.decode(errors="surrogateescape")

    async def _started(self, role: str) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *shlex.split(self.line),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "KFORGE_ROLE": role},
                start_new_session=True,
            )
        except OSError as error:
            raise ModelError(
                f"{self.name} cannot be started: {error.strerror}; check [commands] of --crew"
            ) from None


def as_text(messages: Sequence[Message]) -> str:
    """The conversation as one text; a repair turn says whose words follow."""
    titles = {"assistant": "# Your last answer\n\n", "system": "", "user": ""}
    return "\n\n".join(titles[m["role"]] + m["content"] for m in messages) + "\n"


async def _feed(process: asyncio.subprocess.Process, text: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it need not read all of it
        process.stdin.write(text.encode(errors="replace"))
        await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader) -> bytes:
    """All that comes. ModelError when it is more than a reply can be."""
    found = bytearray()
    while piece := await stream.read(65536):
        found += piece
        if len(found) > MOST_BYTES:
            raise ModelError(f"a command printed more than {MOST_BYTES} bytes; that is no reply")
    return bytes(found)


def _kill(process: asyncio.subprocess.Process) -> None:
    """Ends the command and what it left behind in its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
