"""One request to a language model: the only place that imports litellm.

litellm is a wire adapter here and nothing more. Retries live in `tasks/`; deadline, budget, cost
and record are ours, because each was found broken, missing or surprising (docs/agents.md).
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from agents.budget import Budget, Hold
from agents.faults import refuse_unready, translate
from agents.images import Image, tokens_for
from agents.price import Price, cost_usd, listed, longest_answer, worst_usd
from agents.redaction import redact
from agents.wire import Wire
from data.errors import ModelError
from data.records import LlmCall, digest

Message = dict[str, str]
"""`role` and `content`."""

DEADLINE_S = 300.0
"""A local 1.5B model takes 81 s an answer on a busy host, hosted reasoning models up to minutes."""
MAX_TOKENS = 8192
"""Room for a 64 kB source is about 19,000 tokens, for the usual one 3,000 (LLM.md, section 7)."""
EFFORTS = {"minimal": 128, "low": 1024, "medium": 2048, "high": 4096}
"""Tokens of an answer's room that reasoning takes on Anthropic-style models (LLM.md, section 3)."""
_NO_KEY = "none"
_MARKED = ("anthropic/", "bedrock/anthropic", "bedrock/us.anthropic", "bedrock/eu.anthropic")
"""Providers that cache a prefix only where it is marked; the others do so by themselves."""


class Ask(Protocol):
    """How an agent reaches a model; `tasks/` puts retries and the ledger around `LlmClient.ask`."""

    async def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        response_format: dict[str, Any] | None = None,
        images: Sequence[Image] = (),
    ) -> LlmCall: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """All that is asked at once, whoever answers."""

    messages: Sequence[Message]
    response_format: dict[str, Any] | None = None
    images: Sequence[Image] = ()
    """For those that can see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmClient:
    """A model at an endpoint. `price` None: litellm's list price, which a custom base never has."""

    model: str
    """As litellm spells it: `openai/gpt-5`, `anthropic/claude-sonnet-4-5`, `openai/NAME` + base."""
    api_base: str | None = None
    deadline_s: float = DEADLINE_S
    """Wall-clock seconds for one request; litellm's own limit is per read."""
    max_tokens: int = MAX_TOKENS
    """Of an answer; a repair turn gets twice the room, because the first may have been cut off."""
    effort: str | None = None
    """How much to reason: minimal, low, medium or high; sent to models that can be told."""
    price: Price | None = None
    budget: Budget | None = None
    vision: bool | None = None
    """Whether it can see; None: as litellm's table says, which knows no model of your own."""

    async def ask(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        response_format: dict[str, Any] | None = None,
        images: Sequence[Image] = (),
    ) -> LlmCall:
        """The answer to exactly one request; pictures go to a model that can see, else nowhere.

        ModelError when there is none (`retryable` says whether asking again may help), BudgetError
        before the request when its worst case is above what is left.
        """
        clean = [{**m, "content": redact(m["content"])} for m in messages]
        asked = Question(messages=clean, response_format=response_format, images=images)
        job = _on_loop(self._ask(role, asked))
        return await asyncio.wrap_future(job)

    def prompt_hash(self, question: Question) -> str:
        """Identifies the request: model, base, room, effort, messages, format, pictures."""
        clean = [{**m, "content": redact(m["content"])} for m in question.messages]
        asked = [self.model, redact(self.api_base or ""), self._room(clean), clean]
        asked += [question.response_format]
        asked += [self.effort] if self.effort else []
        asked += [image.name for image in question.images]
        return digest(json.dumps(asked, sort_keys=True))

    def worst_usd(self, messages: Sequence[Message], images: Sequence[Image] = ()) -> float | None:
        """Dollars that the request could cost at most; None where no price is known."""
        litellm = _litellm()
        sent = self._request(litellm, Question(messages=messages))
        pictures = tokens_for(self.model, images)
        return worst_usd(self._price(litellm), messages, sent["max_tokens"], pictures)

    def seen(self, images: Sequence[Image]) -> tuple[Image, ...]:
        """The pictures that the model gets: all or none."""
        if not images or self.vision is False:
            return ()
        sees = self.vision or bool(_litellm().supports_vision(self.model))
        return tuple(images) if sees else ()

    async def _ask(self, role: str, question: Question) -> LlmCall:
        litellm = _litellm()
        refuse_unready(litellm, self.model, needs_key=self._custom_base() is None)
        question = replace(question, images=self.seen(question.images))
        price, sent = self._price(litellm), self._request(litellm, question)
        worst = self.worst_usd(question.messages, question.images)
        hold = self.budget.reserve(worst) if self.budget else None
        started, clock = datetime.now(UTC), time.monotonic()
        answer = await self._exchange(litellm, sent, hold)
        cost = cost_usd(price, answer.usage)
        if hold:
            hold.settle(cost)
        return LlmCall(
            role=role,
            model=self.model,
            prompt_hash=self.prompt_hash(question),
            prompt=json.dumps(question.messages, ensure_ascii=False),
            images=tuple(image.name for image in question.images),
            price=price.vector() if price else {},
            cost_usd=cost,
            seconds=time.monotonic() - clock,
            started_at=started.isoformat(timespec="seconds"),
            **answer.columns(),
        )

    async def _exchange(self, litellm: Any, sent: dict[str, Any], hold: Hold | None) -> Wire:
        """What came back; a call that timed out counts at its worst case, a refused one is free."""
        endpoint = self._endpoint()
        try:
            answer = await asyncio.wait_for(litellm.acompletion(**sent), self.deadline_s)
            _reached().add(endpoint)
            return Wire.of(answer)
        except Exception as error:  # noqa: BLE001 - the edge to a library that raises anything
            if hold and not isinstance(error, TimeoutError | litellm.Timeout):
                hold.settle(0.0)
            fault = translate(
                error,
                litellm=litellm,
                model=self.model,
                endpoint=endpoint,
                reached=endpoint in _reached(),
            )
        raise fault  # outside the handler: the original may hold the key in its request

    def _request(self, litellm: Any, question: Question) -> dict[str, Any]:
        """A closed set of parameters: what litellm does not know goes on the wire unchecked."""
        most = longest_answer(litellm.model_cost, self.model)
        sent: dict[str, Any] = {
            "model": self.model,
            "messages": _with_pictures(question),
            "max_tokens": min(self._room(question.messages), most or sys.maxsize),
            "timeout": self.deadline_s,
            "max_retries": 0,
        }
        if self.api_base:
            sent["api_base"] = self.api_base
            if self.model.startswith("openai/") and not os.environ.get("OPENAI_API_KEY"):
                sent["api_key"] = _NO_KEY
        known = litellm.get_supported_openai_params(self.model) or ()
        if question.response_format is not None and "response_format" in known:
            sent["response_format"] = question.response_format
        if "reasoning_effort" in known and self._reasons(litellm):
            sent["reasoning_effort"] = self.effort
        if self.model.startswith(_MARKED):
            sent["cache_control_injection_points"] = [{"location": "message", "role": "system"}]
        return sent

    def _reasons(self, litellm: Any) -> bool:
        """Whether the effort is sent: the table knows that some of those listed refuse it."""
        if self.effort is None:
            return False
        unknown = not {self.model, self.model.split("/", 1)[-1]} & litellm.model_cost.keys()
        return unknown or bool(litellm.supports_reasoning(self.model))

    def _room(self, messages: Sequence[Message]) -> int:
        repaired = any(m["role"] == "assistant" for m in messages)
        room = self.max_tokens + EFFORTS.get(self.effort or "", 0)
        return 2 * room if repaired else room

    def _price(self, litellm: Any) -> Price | None:
        if self.price is not None:
            return self.price
        return None if self._custom_base() else listed(litellm.model_cost, self.model)

    def _custom_base(self) -> str | None:
        """The endpoint when it is not the vendor's; litellm reads two variables by itself."""
        base = self.api_base
        if base is None and self.model.startswith(("openai/", "gpt-", "o1", "o3", "o4")):
            base = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
        return base

    def _endpoint(self) -> str:
        base = self._custom_base()
        return redact(base) if base else f"the provider of {self.model}"


def _with_pictures(question: Question) -> list[dict[str, Any]]:
    """The messages; the first of the user's carries the pictures, each after its caption."""
    sent: list[dict[str, Any]] = [dict(m) for m in question.messages]
    if question.images:
        first = next(m for m in sent if m["role"] == "user")
        parts: list[dict[str, Any]] = [{"type": "text", "text": first["content"]}]
        for number, image in enumerate(question.images, 1):
            parts.append({"type": "text", "text": f"Picture {number}: {image.caption}"})
            parts.append({"type": "image_url", "image_url": {"url": image.uri}})
        first["content"] = parts
    return sent


def refuse_stolen(folders: Sequence[str]) -> None:
    """ModelError when a folder holds the start-up file of the stolen uploads 1.82.7 and 1.82.8."""
    for folder in folders:
        found = Path(folder) / "litellm_init.pth"
        if found.exists():
            raise ModelError(
                f"{found} comes from a stolen litellm upload (OSV MAL-2026-2144): this environment "
                "is compromised; delete it, change every secret it could read, install anew"
            )


@cache
def _litellm() -> Any:
    """litellm, imported once, 4 to 10 s, without a look at the network."""
    refuse_stolen(sys.path)
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_OFFLINE_MODE"] = "true"
    try:
        import litellm  # noqa: PLC0415 - 4 s and 190 MB that the offline agents do not need
    except ImportError as error:
        raise ModelError(
            f"litellm cannot be imported ({error}); install 'litellm>=1.83.7,!=1.92.0,<2'"
        ) from error
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    return litellm


@cache
def _reached() -> set[str]:
    """Endpoints that have answered in this process: one that falls silent may come back."""
    return set()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One loop thread a process: litellm keeps its connections with the loop that made them."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="kforge-llm", daemon=True).start()
    return loop


def _on_loop(work: Any) -> "Future[LlmCall]":
    return asyncio.run_coroutine_threadsafe(work, _loop())
