"""Whether anything listens at a person's own endpoint, before a device works for its kernels."""

import socket
from functools import cache
from urllib.parse import urlsplit

from agents.faults import REFUSED, UNKNOWN_HOST
from agents.redaction import redact
from data.errors import ModelError

CONNECT_S = 10.0
"""A host that drops packets would hold a connection for two minutes."""


@cache
def ensure_reachable(api_base: str) -> None:
    """ModelError when nothing accepts a connection; one that did is not tried again."""
    url = urlsplit(api_base)
    if not url.hostname:
        raise ModelError(f"--api-base is {redact(api_base)!r}; expected http://HOST:PORT/v1")
    try:
        port = url.port or {"https": 443}.get(url.scheme, 80)
        socket.create_connection((url.hostname, port), timeout=CONNECT_S).close()
    except ValueError:
        raise ModelError(f"--api-base is {redact(api_base)!r}; its port is no number") from None
    except socket.gaierror:
        raise _dead(api_base, UNKNOWN_HOST) from None
    except ConnectionRefusedError:
        raise _dead(api_base, REFUSED) from None
    except OSError as error:
        raise _dead(api_base, str(error)) from None


def _dead(api_base: str, why: str) -> ModelError:
    return ModelError(f"no answer from {redact(api_base)}: {why}; is the server running?")
