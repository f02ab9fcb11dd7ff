"""What a call costs: by our own formula, from raw usage and a price vector."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BYTES_PER_TOKEN = 3.5
"""Code in English, without downloading a tokenizer (LLM.md, section 7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars a token."""

    input: float
    output: float
    """Reasoning tokens are output."""
    cached: float | None = None
    """Prompt tokens read from the provider's cache; None: as `input`."""
    written: float | None = None
    """Prompt tokens written to that cache; None: as `input`."""

    def vector(self) -> dict[str, float]:
        """What is stored beside the usage, so that a cost can be re-made."""
        known = {
            "input": self.input,
            "output": self.output,
            "cached": self.cached,
            "written": self.written,
        }
        return {name: value for name, value in known.items() if value is not None}


def listed(prices: Mapping[str, Mapping[str, Any]], model: str) -> Price | None:
    """The list price in litellm's bundled table; None for a model that it does not know."""
    entry = _entry(prices, model)
    if not entry or not entry.get("input_cost_per_token") or not entry.get("output_cost_per_token"):
        return None
    return Price(
        input=entry["input_cost_per_token"],
        output=entry["output_cost_per_token"],
        cached=entry.get("cache_read_input_token_cost"),
        written=entry.get("cache_creation_input_token_cost"),
    )


def longest_answer(prices: Mapping[str, Mapping[str, Any]], model: str) -> int | None:
    """Tokens that the model can answer with, by the same table; more is refused by providers."""
    found = (_entry(prices, model) or {}).get("max_output_tokens")
    return found if isinstance(found, int) else None


def _entry(prices: Mapping[str, Mapping[str, Any]], model: str) -> Mapping[str, Any] | None:
    return prices.get(model) or prices.get(model.split("/", 1)[-1])


def cost_usd(price: Price | None, usage: Mapping[str, Any]) -> float | None:
    """Dollars for the usage; None when price or usage is unknown.

    >>> cost_usd(Price(input=1.0, output=2.0), {"prompt_tokens": 3, "completion_tokens": 1})
    5.0
    >>> cost_usd(Price(input=1.0, output=2.0), {}) is None
    True
    """
    if price is None or "prompt_tokens" not in usage or "completion_tokens" not in usage:
        return None
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    plain = usage["prompt_tokens"] - cached - written
    return float(
        plain * price.input
        + cached * (price.input if price.cached is None else price.cached)
        + written * (price.input if price.written is None else price.written)
        + usage["completion_tokens"] * price.output
    )


def worst_usd(
    price: Price | None,
    messages: Sequence[Mapping[str, str]],
    max_tokens: int,
    image_tokens: int = 0,
) -> float | None:
    """Dollars if the whole prompt is new and the answer fills its room; None without a price.

    A token is at least one byte, so bytes bound the prompt; twice the usual estimate is used.
    """
    if price is None:
        return None
    text = sum(len(m["content"].encode()) for m in messages) / BYTES_PER_TOKEN
    prompt = 2 * (text + image_tokens)
    return prompt * max(price.input, price.written or 0.0) + max_tokens * price.output
