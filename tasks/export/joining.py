"""A kernel with its launcher as one file that imports nothing of ours."""

import ast
from collections.abc import Iterator

from data.errors import ExportError
from data.records import Candidate, Device
from targets import TARGETS
from targets.joined import joined
from targets.remote.kforge_launch import Half

LAUNCHER = "kforge_launch"


def half_of(device: Device, language: str) -> Half | None:
    """The launcher's part for the language; None for one that is built as it is imported."""
    halves = TARGETS[device.target].halves
    return next((half for half in halves if language in half.languages), None)


def one_file(candidate: Candidate, device: Device) -> str:
    """The candidate's source behind its launcher; ExportError where both define a name."""
    source = candidate.source
    tree = ast.parse(source)
    borrowed = [node for node in ast.walk(tree) if _borrows(node)]
    future = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    kernel = _without(source, [(n, _instead(n)) for n in borrowed] + [(n, "pass") for n in future])
    half = half_of(device, candidate.language)
    if not borrowed or half is None:
        return source
    launcher = joined(half)
    _apart(tree, launcher)
    first = [ast.unparse(node) for node in future]
    head = f"# The launcher: {', '.join(half.languages)} through kforge_launch.\n"
    return "\n".join((*first, head, launcher, "\n# The kernel.\n", kernel))


def _borrows(node: ast.AST) -> bool:
    """Whether it imports the launcher."""
    if isinstance(node, ast.ImportFrom):
        return node.module == LAUNCHER
    return isinstance(node, ast.Import) and any(a.name == LAUNCHER for a in node.names)


def _instead(node: ast.AST) -> str:
    """The statement that binds the same names where the launcher stands in the same file."""
    if isinstance(node, ast.ImportFrom):
        renamed = [f"{a.asname} = {a.name}" for a in node.names if a.asname not in {None, a.name}]
        return "; ".join(renamed) or "pass"
    assert isinstance(node, ast.Import)
    others = [a for a in node.names if a.name != LAUNCHER]
    mine = [a.asname or a.name for a in node.names if a.name == LAUNCHER]
    bound = [f"{name} = sys.modules[__name__]" for name in mine]
    return "; ".join([*(ast.unparse(ast.Import(names=[a])) for a in others), *bound])


def _without(source: str, changes: list[tuple[ast.AST, str]]) -> str:
    """The source with statements replaced; columns count bytes."""
    lines = [line.encode() for line in source.splitlines()]
    for node, text in sorted(changes, key=lambda c: _at(c[0]), reverse=True):
        first, start, last, end = *_at(node), *_end(node)
        left, right = lines[first - 1][:start], lines[last - 1][end:]
        lines[first - 1 : last] = [left + text.encode() + right]
    return b"\n".join(lines).decode() + "\n"


def _at(node: ast.AST) -> tuple[int, int]:
    assert isinstance(node, ast.stmt)
    return node.lineno, node.col_offset


def _end(node: ast.AST) -> tuple[int, int]:
    assert isinstance(node, ast.stmt)
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _apart(kernel: ast.Module, launcher: str) -> None:
    """ExportError when a name of the kernel would replace one of the launcher."""
    theirs = set(_defined(ast.parse(launcher)))
    both = sorted(theirs & set(_defined(kernel)))
    if both:
        raise ExportError(f"it defines {', '.join(both)}, as the launcher in the same file does")


def _defined(module: ast.Module) -> Iterator[str]:
    """What the module binds at its top level, imports left out."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            yield from (n.id for n in names if isinstance(n.ctx, ast.Store))
