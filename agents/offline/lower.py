"""From the traced graph to a program."""

from collections.abc import Mapping, Sequence

from agents.offline.axes import UncoveredError, UnknownError
from agents.offline.elementwise import ELEMENTWISE
from agents.offline.lookups import LOOKUPS
from agents.offline.losses import LOSSES
from agents.offline.lowering import Lowering
from agents.offline.program import Program, Value
from agents.offline.reductions import REDUCTIONS
from agents.offline.reshapes import RESHAPES
from agents.offline.rule import Arguments, Rule
from agents.offline.windows import WINDOWS
from data.records import Node

RULES: dict[str, Rule] = {
    **ELEMENTWISE, **REDUCTIONS, **RESHAPES, **LOSSES, **LOOKUPS, **WINDOWS
}  # fmt: skip


def lower(graph: Sequence[Node], further: Mapping[str, Rule] | None = None) -> Program:
    """The graph as one fused program; UncoveredError names the node that has no rule.

    `further` rules go before the common ones.
    """
    if not graph:
        raise UncoveredError("needs a traced graph, and this operator could not be traced")
    state = Lowering(graph)
    rules = {**RULES, **(further or {})}
    live = _live(graph)
    for node in graph:
        if node.op == "input" and (node.name not in live or not node.dtype):
            state.inputs.append(node.name)
        elif node.op in ("input", "parameter") and node.name in live:
            state.values[node.name] = state.tensor(node)
        elif node.op not in ("input", "parameter", "output") and node.name in live:
            _apply(state, node, rules)
    return _program(state, graph[-1])


def base_name(node: Node) -> str:
    """`softmax` of `aten.softmax.int`; an in-place operator has the name of the other one."""
    name = node.op.split(".")[1] if node.op.startswith("aten.") else node.op
    return name if name.startswith("__") else name.removesuffix("_")


def references(value: object) -> tuple[str, ...]:
    """Names of the nodes that an argument refers to."""
    if isinstance(value, dict):
        return (str(value["node"]),) if "node" in value else ()
    if isinstance(value, (list, tuple)):
        return tuple(n for v in value for n in references(v))
    return ()


def _live(graph: Sequence[Node]) -> set[str]:
    """Nodes that the output depends on; what an in-place operator changes counts as its result."""
    live: set[str] = set()
    for node in reversed(graph):
        uses = references((*node.args, *node.kwargs.values()))
        changes = node.op.startswith("aten.") and node.op.split(".")[1].endswith("_")
        changes = changes and not node.op.split(".")[1].startswith("__")
        if node.op == "output" or node.name in live or (changes and uses and uses[0] in live):
            live.update((node.name, *uses))
    return live


def _apply(state: Lowering, node: Node, rules: Mapping[str, Rule]) -> None:
    name = base_name(node)
    rule = rules.get(name)
    if rule is None:
        raise UnknownError(f"has no template for {'.'.join(node.op.split('.')[:2])}")
    in_place = node.op.split(".")[1].endswith("_") if node.op.startswith("aten.") else False
    result = rule(state, node, Arguments(state, node))
    state.values[node.name] = result
    if in_place and not name.startswith("__"):
        target = references(node.args[:1])[0]
        if state.nodes[target].op in ("input", "parameter"):
            raise UncoveredError("does not change an input in place")
        state.values[target] = result


def _program(state: Lowering, output: Node) -> Program:
    returned = output.args[0]
    several = isinstance(returned, (list, tuple))
    names = references(returned)
    values = [state.values[n] for n in names]
    if len(names) != (len(returned) if isinstance(returned, (list, tuple)) else 1):
        raise UncoveredError("has no template for this output structure")
    single = [v for v in values if isinstance(v, Value)]
    if len(single) != len(values):
        raise UncoveredError("has no template for this output structure")
    dtypes = tuple(state.nodes[n].dtype for n in names)
    return Program(
        outputs=tuple(single),
        dtypes=dtypes,
        axes=state.axes,
        setup=tuple(state.setup),
        inputs=tuple(state.inputs),
        several=several,
    )
