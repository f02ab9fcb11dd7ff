"""From what litellm raises to one clear line, and whether asking again may help."""

import asyncio
import email.utils
import errno
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

from agents.redaction import redact
from data.errors import ContextError, ModelError

LONGEST = 300
"""Characters of a provider's own words that are kept."""
_GARBAGE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_GARBAGE_WORDS = ("invalid response from LLM endpoint", "response with no 'choices'")
"""How litellm 1.110.2 puts it, as a 500 that the server never sent."""
_TRANSPORT = ("ConnectError", "RemoteProtocolError", "ReadError", "WriteError")
"""httpx's errors by name: the library is litellm's, not ours to import."""
REFUSED = "connection refused"
UNKNOWN_HOST = "the host name is not known"
NOBODY = (REFUSED, UNKNOWN_HOST)
"""Nothing lives at the address, as far as this says."""
_PREFIX = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)\b(?::| -)\s*")


def translate(
    error: Exception, *, litellm: Any, model: str, endpoint: str, reached: bool
) -> ModelError:
    """The ModelError for what a request raised; never holds a secret.

    Where nobody ever answered (`reached` False) the address is wrong: waiting does not mend it.
    """
    if isinstance(error, ModelError):
        return error
    if isinstance(error, asyncio.TimeoutError | litellm.Timeout):
        return ModelError(f"no answer from {endpoint} within the deadline", retryable=True)
    if (broken := _connection(error)) is not None:
        return ModelError(
            f"no answer from {endpoint}: {broken}; is the server running?",
            retryable=reached or broken not in NOBODY,
        )
    if isinstance(error, litellm.AuthenticationError | litellm.PermissionDeniedError):
        name = _key_name(litellm, model)
        return ModelError(f"{endpoint} refused the key for {model}; check {name}")
    return _by_class(error, litellm=litellm, model=model, endpoint=endpoint)


def _by_class(error: Exception, *, litellm: Any, model: str, endpoint: str) -> ModelError:
    said = _said(error)
    if isinstance(error, litellm.ContextWindowExceededError):
        return ContextError(f"the prompt is longer than {model} takes: {said}")
    if "insufficient_quota" in str(error):
        return ModelError(f"{endpoint} has no quota left for this key: {said}")
    if isinstance(error, litellm.RateLimitError):
        return ModelError(
            f"{endpoint} limits the rate of {model}: {said}",
            retryable=True,
            retry_after_s=_retry_after(error),
        )
    if isinstance(error, litellm.NotFoundError):
        return ModelError(f"{endpoint} does not know {model}; check --model and --api-base: {said}")
    if isinstance(error, litellm.ContentPolicyViolationError | litellm.BadRequestError):
        return ModelError(f"{endpoint} refused the request for {model}: {said}")
    if _is_garbage(error, litellm):
        return ModelError(
            f"{endpoint} did not answer as a chat completion; check --api-base: {said}"
        )
    if isinstance(
        error, litellm.APIError | litellm.ServiceUnavailableError | litellm.InternalServerError
    ):
        return ModelError(
            f"{endpoint} failed: {said}", retryable=True, retry_after_s=_retry_after(error)
        )
    return ModelError(f"asking {model} at {endpoint} failed: {type(error).__name__}: {said}")


def _is_garbage(error: Exception, litellm: Any) -> bool:
    """A body that is no completion: litellm stumbles over it or wraps that it did."""
    if any(words in str(error) for words in _GARBAGE_WORDS):
        return True
    if isinstance(error, _GARBAGE) and not isinstance(error, litellm.APIError):
        return True
    return any(isinstance(e, _GARBAGE) for e in _chain(error) if e is not error)


def _connection(error: BaseException) -> str | None:
    """Why no connection came about or held; None when one did."""
    links = list(_chain(error))
    if any(errno.ECONNREFUSED in (getattr(e, "errno", None), _errno(e)) for e in links):
        return REFUSED
    if any(isinstance(e, socket.gaierror) or "Name or service not known" in str(e) for e in links):
        return UNKNOWN_HOST
    if any(isinstance(e, ConnectionResetError | BrokenPipeError) for e in links):
        return "the connection broke"
    broken = (e for e in links if type(e).__name__ in _TRANSPORT)
    found = next(broken, None)
    return None if found is None else redact(str(found))[:LONGEST] or "the connection broke"


def _errno(link: BaseException) -> int | None:
    """The system's error, which aiohttp keeps beside its own."""
    return getattr(getattr(link, "os_error", None), "errno", None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def refuse_unready(litellm: Any, model: str, *, needs_key: bool) -> None:
    """ModelError when the model's name means nothing or its key is not in the environment."""
    try:
        litellm.get_llm_provider(model)
    except litellm.BadRequestError:
        raise ModelError(
            f"unknown model {model!r}; expected PROVIDER/NAME, such as openai/gpt-5"
        ) from None
    missing = _missing(litellm, model)
    if needs_key and missing and all(name.endswith("_API_KEY") for name in missing):
        raise ModelError(f"no key for {model}; set {' or '.join(missing)} in the environment")


def _missing(litellm: Any, model: str) -> list[str]:
    return list(litellm.validate_environment(model).get("missing_keys") or ())


def _key_name(litellm: Any, model: str) -> str:
    """The variables that hold the key for this model."""
    _, provider, _, _ = litellm.get_llm_provider(model)
    return " or ".join(_missing(litellm, model)) or f"{provider.upper()}_API_KEY"


def _retry_after(error: Exception) -> float | None:
    """Seconds that the provider asks for; its header holds seconds or a date."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    headers = headers or getattr(error, "litellm_response_headers", None) or {}
    text = headers.get("retry-after")
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        moment = email.utils.parsedate_to_datetime(text)
        return max(0.0, moment.timestamp() - time.time())


def _said(error: Exception) -> str:
    """The provider's own words on one line, without secrets."""
    text = " ".join(str(getattr(error, "message", "") or error).split())
    while (bare := _PREFIX.sub("", text)) != text:
        text = bare
    return redact(text)[:LONGEST] or type(error).__name__
