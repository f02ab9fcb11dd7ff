"""A function or class with all that it uses, as one text that runs where our files are not.

What it imports of `targets` is followed, anything else of ours is refused.
"""

import ast
import functools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


def closure(module: str, name: str) -> list[str]:
    """The statements of a loaded module that `name` reaches, each after those that it uses."""
    parts = _Taken()
    parts.take(module, name)
    return parts.texts


def alone(module: str, entry: str) -> Callable[[Sequence[str]], int]:
    """Becomes a process of its own that calls `entry` with the words, for a compiler with threads.

    A fork keeps none of a loaded run time's. The source is read here and goes along: the process
    starts where walls hide our files.
    """
    end = f"import sys\nsys.exit({entry}(sys.argv[1:]))"
    text = "\n\n".join((*closure(module, entry), end))

    def run(words: Sequence[str]) -> int:
        os.execv(sys.executable, (sys.executable, "-I", "-c", text, *words))  # noqa: S606 (a list)

    return run


@dataclass(slots=True)
class _Taken:
    """The statements so far, each after those that it uses."""

    texts: list[str] = field(default_factory=list)
    _seen: set[tuple[str, int]] = field(default_factory=set)
    _homes: dict[str, str] = field(default_factory=dict)
    """Module by the names that ours define, which become one namespace."""

    def take(self, module: str, name: str) -> None:
        """Adds the statement of the module that defines the name, and what that one uses."""
        source, statements = _parsed(module)
        for statement in statements.get(name, ()):
            if isinstance(statement, ast.ImportFrom) and _ours(statement.module):
                self.take(statement.module or "", name)  # one statement may bring several names
                continue
            if (module, statement.lineno) in self._seen:
                continue
            self._seen.add((module, statement.lineno))
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                self._claim(module, name)
            for used in sorted(_used(statement) - {name}):
                self.take(module, used)
            self.texts.append(_text(source, statement))

    def _claim(self, module: str, name: str) -> None:
        if (home := self._homes.setdefault(name, module)) != module:
            raise RuntimeError(f"{home} and {module} both define {name}: rename one of them")


@functools.cache
def _parsed(module: str) -> tuple[str, dict[str, list[ast.stmt]]]:
    """The source of a loaded module, and its outer statements by the names that they bind."""
    source = Path(sys.modules[module].__file__ or "").read_text()
    statements: dict[str, list[ast.stmt]] = {}
    for statement in ast.parse(source).body:
        for name in _defined(statement):
            statements.setdefault(name, []).append(statement)
    return source, statements


def _ours(module: str | None) -> bool:
    """Whether a module is followed; RuntimeError for what must not travel."""
    package = (module or "").partition(".")[0]
    if package in {"data", "agents", "tasks", "flows"}:
        raise RuntimeError(f"a launcher's part must not use {module}: it travels alone")
    return package == "targets"


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a statement at the outer level binds."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {a.asname or a.name.partition(".")[0] for a in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def _used(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}


def _text(source: str, statement: ast.stmt) -> str:
    """The statement's lines, its decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    first = min((d.lineno for d in decorators), default=statement.lineno)
    return "\n".join(source.splitlines()[first - 1 : statement.end_lineno])
