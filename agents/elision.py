"""Whether a source leaves parts out: placeholders instead of code.

A bare `...` is legal in an index or an annotation, so comments and function bodies are judged,
never the token.
"""

import ast
import re
import warnings
from collections.abc import Iterator

_COMMENT_LINE = re.compile(
    r"^[ \t]*(?:#(?!include|define|pragma|if|endif|else|undef)|//|/\*)(.*)$", re.MULTILINE
)
_GONE = r"(?:unchanged|omitted|as before|goes here|stays? the same)\W*(?:for brevity)?\W*$"
_PLACEHOLDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^\W*(?:\.\.\.|…)\W*$",
        r"^\W*(?:\.\.\.|…)\s*\(?(?:the\s+)?(?:existing|rest|remaining|same|other|unchanged|omitted)\b",
        rf"\b(?:rest|remainder|remaining)\b.{{0,40}}\b{_GONE}",
        rf"^\W*(?:\w+\W+){{0,2}}(?:code|kernel|class|function|method)s? (?:is |are )?{_GONE}",
        r"^\W*(?:\w+\W+){0,3}(?:same|unchanged) (?:as|from) (?:before|above|the prev.*)\W*$",
        r"^\W*(?:existing|previous) (?:code|implementation)\b",
        r"\b(?:your|actual|real) (?:code|implementation|kernel)\b.{0,12}\bhere\b",
        r"^\W*TODO\W*(?:implement|fill in|write|complete|add)\b",
    )
)


def elided(source: str) -> bool:
    """Whether a comment or an empty body stands for code that is missing.

    >>> elided("# ... rest unchanged ...")
    True
    >>> elided("y = x[..., 0]  # the last axis")
    False
    """
    comments = (match.group(1) for match in _COMMENT_LINE.finditer(source))
    if any(p.search(comment) for comment in comments for p in _PLACEHOLDERS):
        return True
    return any(_hollow(function) for function in _functions(source))


def _functions(source: str) -> Iterator[ast.FunctionDef]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _hollow(function: ast.FunctionDef) -> bool:
    """Only `...` or a docstring; `pass` and NotImplementedError too where a result is due."""
    body = [s for s in function.body if not _is_text(s)]
    if len(body) > 1:
        return False
    if not body or (isinstance(body[0], ast.Expr) and _is_ellipsis(body[0].value)):
        return True
    if isinstance(body[0], ast.Raise):
        return function.name == "forward" and "NotImplementedError" in ast.dump(body[0])
    return isinstance(body[0], ast.Pass) and function.name == "forward"


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_ellipsis(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is Ellipsis
