"""The Python half of a candidate: the operator's constructor, a forward that calls a kernel."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.offline.axes import UncoveredError


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What `forward` does."""

    inputs: tuple[str, ...]
    body: tuple[str, ...]
    """Lines up to and with the return."""


def module(operator_source: str, kernel: str, call: Call, *, language: str = "cpp") -> str:
    """A complete candidate in `ModelNew` form."""
    constructor, imports = _constructor(operator_source)
    heads = ["import torch", "from torch import nn", "from kforge_launch import kernels", *imports]
    forward = [f"    def forward({', '.join(['self', *call.inputs])}):"]
    forward += [f"        {line}" for line in call.body]
    parts = [
        "\n".join(dict.fromkeys(heads)),
        f"K = kernels(r'''\n{kernel}''', language=\"{language}\")",
        "\n".join(["class ModelNew(nn.Module):", *constructor, *forward]),
    ]
    return "\n\n".join(parts) + "\n"


def attribute(name: str) -> str:
    """Python of a parameter by its name in `state_dict`.

    >>> attribute("net.0.weight")
    'self.net[0].weight'
    """
    text = "self"
    for part in name.split("."):
        text += f"[{part}]" if part.isdigit() else f".{part}"
    return text


def _constructor(source: str) -> tuple[list[str], list[str]]:
    """The methods of `Model` but forward, and the top-level statements that they rest on."""
    tree = ast.parse(source)
    model = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
    if model is None:
        raise UncoveredError("needs a class Model in the operator")
    methods = [n for n in model.body if isinstance(n, ast.FunctionDef) and n.name != "forward"]
    for method in methods:
        for name in ast.walk(method):
            if isinstance(name, ast.Name) and name.id == "Model":
                name.id = "ModelNew"
    lines = [f"    {line}" for m in methods for line in [*ast.unparse(m).splitlines(), ""]]
    return lines, [ast.unparse(n) for n in _needed(tree, methods)]


def _needed(tree: ast.Module, methods: Sequence[ast.AST]) -> list[ast.stmt]:
    """Top-level statements that define names used by the methods, directly or not."""
    wanted = _names(methods)
    kept: list[ast.stmt] = []
    grown = True
    while grown:
        grown = False
        for node in tree.body:
            if node not in kept and _defines(node) & wanted and not _is_model(node):
                kept.append(node)
                wanted |= _names([node])
                grown = True
    return [n for n in tree.body if n in kept]


def _is_model(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and node.name == "Model"


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _defines(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(a.asname or a.name).split(".")[0] for a in node.names}
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {t.id for t in targets if isinstance(t, ast.Name)}
