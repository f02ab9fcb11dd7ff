"""What the page reads: JSON in ASCII, tables by column, chunks that are unpacked when asked for."""

import base64
import json
import math
import re
import zlib
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

Json = Any
"""Plain data, on its way into the page."""

DIGITS = 6
"""Significant digits of a number in the page: more than is measured, fewer than 17."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    r"""The text with every character spelt out that nobody sees or that reorders its neighbours.

    >>> visible("a\u202eb\r\n\tc")
    'a⟨U+202E⟩b\n\tc'
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))


def plain(value: object) -> Json:
    """One value as the page can hold it: times as text in UTC, no infinities, nothing hidden.

    >>> plain([1.23456789, float("nan"), datetime(2026, 1, 2), None])
    [1.23457, None, '2026-01-02 00:00:00', None]
    """
    match value:
        case None | bool() | int():
            return value
        case float() | Decimal():
            return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
        case str():
            return visible(value)
        case list() | tuple():
            return [plain(v) for v in value]
        case dict():
            return {visible(str(k)): plain(v) for k, v in value.items()}
        case datetime():
            return value.isoformat(" ", "seconds")
        case _:
            return visible(str(value))


def table(rows: pa.Table) -> Json:
    """The rows by column; a column of text holds each different value once, with an index a row."""
    return {
        "rows": rows.num_rows,
        "columns": {name: _column(rows.column(name)) for name in rows.column_names},
    }


def _column(values: pa.ChunkedArray) -> Json:
    if pa.types.is_floating(values.type) or pa.types.is_integer(values.type):
        return [plain(v) for v in values.to_pylist()]
    if pa.types.is_nested(values.type):
        values = pa.chunked_array([pa.array(map(json.dumps, values.to_pylist()), pa.string())])
        different = values.combine_chunks().dictionary_encode()
        known = map(json.loads, different.dictionary.to_pylist())
    else:
        different = values.combine_chunks().dictionary_encode(null_encoding="encode")
        known = different.dictionary.to_pylist()
    return {"values": [plain(v) for v in known], "codes": different.indices.to_pylist()}


def script(value: Json) -> str:
    r"""JSON that cannot end a script element or start markup: ASCII without `<`, `>` and `&`.

    >>> print(script("</script>"))
    "\u003c/script\u003e"
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text)


def chunk(value: Json) -> str:
    """The value as compressed JSON in base 64, a fifth of the size where sources resemble."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode("ascii")


def unpacked(text: str) -> Json:
    """The value of a chunk."""
    return json.loads(zlib.decompress(base64.b64decode(text)))
