"""The form of an operator's source: KernelBench's three parts and our metadata as literals.

Nothing here imports or executes a source.
"""

import ast
import re
import warnings
from collections.abc import Iterator

from data.errors import OperatorError
from data.records import OFFICIAL, OutputKind

PARTS = {
    "Model": "class Model",
    "get_inputs": "get_inputs()",
    "get_init_inputs": "get_init_inputs()",
}
METADATA = ("FAMILY", "OUTPUT", "SHAPES", "DOMAINS")
_DOMAIN = re.compile(r"real|positive|probability|log_probability|fixed|index:\w+")


def literals(source: str) -> dict[str, object]:
    """The declared metadata by name; raises OperatorError for what does not parse."""
    pairs = (pair for node in _parse(source).body for pair in _assigned(node))
    return {name: _literal(name, value) for name, value in pairs if name in METADATA}


def fault(source: str) -> str | None:
    """Why the source is not an operator, in words; None if it is one."""
    try:
        bound = set(_bound(_parse(source)))
        missing = [words for name, words in PARTS.items() if name not in bound]
        return f"it lacks {', '.join(missing)}" if missing else _metadata_fault(literals(source))
    except OperatorError as error:
        return str(error)


def resembles(source: str) -> bool:
    """Whether the source names one of the parts; else it is a module that lies beside operators."""
    return any(re.search(rf"^\s*(class|def) {name}\b", source, re.MULTILINE) for name in PARTS)


def _parse(source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an operator's invalid escapes are not our business
            return ast.parse(source)
    except SyntaxError as error:
        raise OperatorError(f"syntax error in line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise OperatorError(f"cannot be parsed: {error}") from None


def _bound(module: ast.Module) -> Iterator[str]:
    """Names that the module binds at its top level."""
    for node in module.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        else:
            yield from (target for target, _ in _assigned(node))


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Name and value of a plain assignment."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, node.value


def _literal(name: str, value: ast.expr) -> object:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError):
        raise OperatorError(f"{name} in line {value.lineno} is not a literal") from None


def _metadata_fault(declared: dict[str, object]) -> str | None:
    family, output = declared.get("FAMILY", ""), declared.get("OUTPUT", "float")
    kinds = output if isinstance(output, list | tuple) else [output]
    domains = declared.get("DOMAINS", [])
    if not isinstance(family, str):
        return f"FAMILY is {family!r}, expected a word"
    if "SHAPES" in declared and not _are_shapes(declared["SHAPES"]):
        return "SHAPES must map names, 'full' among them, to dicts of keyword and integer"
    if not kinds or any(kind not in set(OutputKind) for kind in kinds):
        return f"OUTPUT is {output!r}, expected {', '.join(OutputKind)} or a list of these"
    if not isinstance(domains, list | tuple) or not all(map(_is_domain, domains)):
        return f"DOMAINS is {domains!r}, expected a list of {_DOMAIN.pattern.replace('|', ', ')}"
    return None


def _is_domain(value: object) -> bool:
    return isinstance(value, str) and bool(_DOMAIN.fullmatch(value))


def _are_shapes(value: object) -> bool:
    if not isinstance(value, dict) or OFFICIAL not in value:
        return False
    return all(
        isinstance(sizes, dict) and all(isinstance(size, int) for size in sizes.values())
        for sizes in value.values()
    )
