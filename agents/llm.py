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
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from agents.budget import Budget, Hold
from agents.faults import refuse_unready, translate
from agents.price import Price, cost_usd, listed, longest_answer, worst_usd
from agents.redaction import redact
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
UNTOUCHED = "unparsed"
"""`parse_status` of a reply that no agent has read yet."""
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
    ) -> LlmCall: ...


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

    async def ask(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        response_format: dict[str, Any] | None = None,
    ) -> LlmCall:
        """The answer to exactly one request.

        ModelError when there is none (`retryable` says whether asking again may help), BudgetError
        before the request when its worst case is above what is left.
        """
        clean = [{**m, "content": redact(m["content"])} for m in messages]
        job = _on_loop(self._ask(role, clean, response_format))
        return await asyncio.wrap_future(job)

    def prompt_hash(
        self, messages: Sequence[Message], response_format: dict[str, Any] | None = None
    ) -> str:
        """Identifies the request: model, base, room, effort, messages, format."""
        clean = [{**m, "content": redact(m["content"])} for m in messages]
        asked = [self.model, redact(self.api_base or ""), self._room(clean), clean, response_format]
        asked += [self.effort] if self.effort else []
        return digest(json.dumps(asked, sort_keys=True))

    def worst_usd(self, messages: Sequence[Message]) -> float | None:
        """Dollars that the request could cost at most; None where no price is known."""
        litellm = _litellm()
        sent = self._request(litellm, list(messages), None)
        return worst_usd(self._price(litellm), messages, sent["max_tokens"])

    async def _ask(
        self, role: str, messages: list[Message], response_format: dict[str, Any] | None
    ) -> LlmCall:
        litellm = _litellm()
        refuse_unready(litellm, self.model, needs_key=self._custom_base() is None)
        price = self._price(litellm)
        sent = self._request(litellm, messages, response_format)
        worst = worst_usd(price, messages, sent["max_tokens"])
        hold = self.budget.reserve(worst) if self.budget else None
        started, clock = datetime.now(UTC), time.monotonic()
        answer = await self._exchange(litellm, sent, hold)
        cost = cost_usd(price, answer.usage)
        if hold:
            hold.settle(cost)
        return LlmCall(
            role=role,
            model=self.model,
            prompt_hash=self.prompt_hash(messages, response_format),
            prompt=json.dumps(messages, ensure_ascii=False),
            price=price.vector() if price else {},
            cost_usd=cost,
            seconds=time.monotonic() - clock,
            started_at=started.isoformat(timespec="seconds"),
            **answer.columns(),
        )

    async def _exchange(self, litellm: Any, sent: dict[str, Any], hold: Hold | None) -> "_Wire":
        """What came back; a call that timed out counts at its worst case, a refused one is free."""
        endpoint = self._endpoint()
        try:
            answer = await asyncio.wait_for(litellm.acompletion(**sent), self.deadline_s)
            _reached().add(endpoint)
            return _Wire.of(answer)
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

    def _request(
        self, litellm: Any, messages: list[Message], response_format: dict[str, Any] | None
    ) -> dict[str, Any]:
        """A closed set of parameters: what litellm does not know goes on the wire unchecked."""
        most = longest_answer(litellm.model_cost, self.model)
        sent: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "max_tokens": min(self._room(messages), most or sys.maxsize),
            "timeout": self.deadline_s,
            "max_retries": 0,
        }
        if self.api_base:
            sent["api_base"] = self.api_base
            if self.model.startswith("openai/") and not os.environ.get("OPENAI_API_KEY"):
                sent["api_key"] = _NO_KEY
        known = litellm.get_supported_openai_params(self.model) or ()
        if response_format is not None and "response_format" in known:
            sent["response_format"] = response_format
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wire:
    """What came back, without litellm's types."""

    reply: str | None
    reasoning: str | None
    finish_reason: str | None
    usage: dict[str, Any]
    """Empty when the provider sent none: litellm invents zeros."""

    @classmethod
    def of(cls, response: Any) -> "_Wire":
        """AttributeError, IndexError, KeyError or TypeError when it is no chat completion."""
        choice = response.choices[0]
        message = choice.message
        refusal = getattr(message, "refusal", None) if message.content is None else None
        return cls(
            reply=_text(refusal or message.content),
            reasoning=_text(getattr(message, "reasoning_content", None)),
            finish_reason="content_filter" if refusal else choice.finish_reason,
            usage=_usage(response),
        )

    def columns(self) -> dict[str, Any]:
        """The fields of an `LlmCall` that the provider fills."""
        return {
            "reply": self.reply,
            "reasoning": self.reasoning,
            "finish_reason": self.finish_reason,
            "parse_status": UNTOUCHED,
            "prompt_tokens": self._count("prompt_tokens"),
            "cached_tokens": self._count("prompt_tokens_details", "cached_tokens"),
            "completion_tokens": self._count("completion_tokens"),
            "reasoning_tokens": self._count("completion_tokens_details", "reasoning_tokens"),
            "usage": redact(json.dumps(self.usage)),
        }

    def _count(self, *path: str) -> int | None:
        """A figure of the usage; None where the provider did not say."""
        found: Any = self.usage
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, int) else None


def _usage(response: Any) -> dict[str, Any]:
    """Litellm turns a missing usage into zeros: a call without tokens is one without usage."""
    usage = response.get("usage")
    if not usage:
        return {}
    found: dict[str, Any] = usage.model_dump(mode="json", exclude_none=True)
    return found if found.get("prompt_tokens") or found.get("completion_tokens") else {}


def _text(value: object) -> str | None:
    return redact(value) if isinstance(value, str) else None


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
