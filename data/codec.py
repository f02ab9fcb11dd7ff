"""Records to JSON and back: plain data only, checked field by field, never pickle."""

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_PLAIN = frozenset({type(None), bool, int, float, str})
"""Most values of a record, raw times above all; an enum is of none of these types itself."""


def dumps(value: object) -> str:
    """One line of JSON; a record becomes an object, an enum its value."""
    return json.dumps(encode(value), ensure_ascii=False, allow_nan=True)


def loads(kind: type[T], text: str) -> T:
    """The record in `text`; ValueError or TypeError when it is none."""
    value: T = decode(kind, json.loads(text))
    return value


def encode(value: object) -> Any:
    """Plain data for `json.dumps`.

    >>> from data.records import Contract
    >>> encode(Contract())
    {'policy': 'strict', 'library': 'flagged', 'shapes': 'fixed'}
    """
    if type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(v) for v in value]
    return value


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    """The types of a record's fields by name."""
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind) if f.init}


def decode(kind: Any, value: Any) -> Any:
    """`value` as `kind`: a record, an enum, a tuple, a dict, a union or a plain type.

    Unknown fields are passed over, so that rows of a newer version stay readable.
    """
    if kind is Any or kind is object:
        return _frozen(value)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _union(get_args(kind), value)
    if origin is tuple:
        return tuple(decode(get_args(kind)[0], v) for v in value)
    if origin is dict:
        return {k: decode(get_args(kind)[1], v) for k, v in value.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        known = _hints(kind)
        return kind(**{k: decode(known[k], v) for k, v in value.items() if k in known})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    return _plain(kind, value)


def _union(kinds: tuple[Any, ...], value: Any) -> Any:
    if value is None and type(None) in kinds:
        return None
    last: Exception | None = None
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return decode(kind, value)
        except (TypeError, ValueError) as error:
            last = error
    raise ValueError(f"{value!r} is none of {kinds}") from last


def _plain(kind: Any, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind}, got {value!r}")
    return value


def _frozen(value: Any) -> Any:
    """Lists become tuples, as in the records that were encoded."""
    if isinstance(value, list):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, dict):
        return {k: _frozen(v) for k, v in value.items()}
    return value
