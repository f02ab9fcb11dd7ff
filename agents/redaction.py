"""Secrets taken out of text before it is kept, shown or sent."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache

_NAME = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_|$)", re.IGNORECASE)
SHORTEST = 8
"""Shorter values are words such as `none` or `dummy`, and would blacken ordinary text."""
_SHAPES = (
    (re.compile(r"([?&](?:api[-_]?)?key=)[^&\s\"']+", re.IGNORECASE), r"\1[redacted]"),
    (re.compile(r"\b(Bearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE), r"\1[redacted]"),
    (re.compile(r"\bsk-[\w-]{8,}"), "[redacted]"),
    (re.compile(r"(//)[^/\s:@]+:[^/\s@]+@"), r"\1[redacted]@"),
)


def redact(text: str, environment: Mapping[str, str] | None = None) -> str:
    """`text` without the values of secret environment variables and without what looks like a key.

    >>> redact("refused: abcdefgh1", {"OPENAI_API_KEY": "abcdefgh1"})
    'refused: [redacted OPENAI_API_KEY]'
    >>> redact("GET https://host/v1?key=abc", {})
    'GET https://host/v1?key=[redacted]'
    """
    known = os.environ if environment is None else environment
    secrets = [(v, k) for k, v in known.items() if len(v) >= SHORTEST and _secret(k)]
    for value, name in sorted(secrets, key=lambda s: -len(s[0])):
        text = text.replace(value, f"[redacted {name}]")
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    return text


@lru_cache(maxsize=1024)
def _secret(name: str) -> bool:
    return _NAME.search(name) is not None
