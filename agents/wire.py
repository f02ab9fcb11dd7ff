"""What a provider answered, without litellm's types."""

import json
from dataclasses import dataclass
from typing import Any

from agents.redaction import redact

UNTOUCHED = "unparsed"
"""`parse_status` of a reply that no agent has read yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One answer."""

    reply: str | None
    reasoning: str | None
    finish_reason: str | None
    usage: dict[str, Any]
    """Empty when the provider sent none: litellm invents zeros."""

    @classmethod
    def of(cls, response: Any) -> "Wire":
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
