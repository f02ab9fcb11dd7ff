"""The launcher as one file for an export: the core and the half that a candidate needs.

The half stands in a target's file among things that do not travel, so only the statements that it
reaches are taken; what it imports of `targets` is followed, anything else of ours is refused.
"""

import ast
import sys
from dataclasses import dataclass, field
from pathlib import Path

from targets.remote import kforge_launch
from targets.remote.kforge_launch import CPP, Half


def joined(half: Half) -> str:
    """Source of a `kforge_launch.py` that knows the half's languages beside C and C++."""
    core = Path(kforge_launch.__file__).read_text()
    if half is CPP:
        return core
    kind = type(half)
    parts = _Taken()
    parts.take(kind.__module__, kind.__name__)
    entry = f"HALVES.update(dict.fromkeys({kind.__name__}.languages, {kind.__name__}()))"
    return "\n\n\n".join((core.rstrip(), *parts.texts, entry)) + "\n"


@dataclass(slots=True)
class _Taken:
    """The statements so far, each after those that it uses."""

    texts: list[str] = field(default_factory=list)
    _seen: set[tuple[str, int]] = field(default_factory=set)

    def take(self, module: str, name: str) -> None:
        """Adds the statement of the module that defines the name, and what that one uses."""
        source = Path(sys.modules[module].__file__ or "").read_text()
        for statement in ast.parse(source).body:
            if name not in _defined(statement):
                continue
            if isinstance(statement, ast.ImportFrom) and _ours(statement.module):
                self.take(statement.module or "", name)  # one statement may bring several names
                continue
            if (module, statement.lineno) in self._seen:
                continue
            self._seen.add((module, statement.lineno))
            for used in sorted(_used(statement) - {name}):
                self.take(module, used)
            self.texts.append(_text(source, statement))


def _ours(module: str | None) -> bool:
    """Whether a module is followed; RuntimeError for what must not be in a half."""
    package = (module or "").partition(".")[0]
    if package in {"data", "agents", "tasks", "flows"}:
        raise RuntimeError(f"a launcher's half must not use {module}: it travels alone")
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
