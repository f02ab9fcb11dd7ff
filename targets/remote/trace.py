"""The traced operator as plain data: which ATen calls, in which order, on which shapes.

The graph is taken before decomposition, so that `softmax` or `layer_norm` stay one node. It serves
agents only; nothing that is trusted rests on it.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from data.records import Node
from targets.remote.operator import LoadedOperator

STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def trace(loaded: LoadedOperator, shape: str) -> tuple[Node, ...]:
    """The operator's nodes at that shape, in order; () when torch.export cannot trace it.

    A number that is a length of an input, as a second shape tells, is written
    `{"size": INPUT, "dim": D}`: a kernel made of the graph is then right at both.
    """
    graph = _at(loaded, shape)
    other = next((_at(loaded, s) for s in loaded.shapes if s != shape), ()) if graph else ()
    if [n.op for n in graph] != [n.op for n in other]:
        return graph
    pairs = list(zip(graph, other, strict=True))
    lengths = _lengths(pairs)
    return tuple(replace(a, args=tuple(_sized(a.args, b.args, lengths))) for a, b in pairs)


def _lengths(pairs: Sequence[tuple[Node, Node]]) -> dict[tuple[int, int], dict[str, object]]:
    """Dimensions of inputs by their lengths at the two shapes."""
    return {
        (m, n): {"size": a.name, "dim": d}
        for a, b in reversed(pairs)
        if a.op == "input"
        for d, (m, n) in reversed(list(enumerate(zip(a.shape, b.shape, strict=False))))
    }


def _sized(
    values: Sequence[object],
    others: Sequence[object],
    lengths: Mapping[tuple[int, int], dict[str, object]],
) -> Iterator[object]:
    for a, b in zip(values, others, strict=False):
        if isinstance(a, tuple) and isinstance(b, tuple):
            yield tuple(_sized(a, b, lengths))
        elif type(a) is type(b) is int and a != b:
            yield lengths.get((a, b), a)
        else:
            yield a


def _at(loaded: LoadedOperator, shape: str) -> tuple[Node, ...]:
    try:
        model, inputs = loaded.model(shape, 0), loaded.inputs(shape, 0)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            exported = torch.export.export(model, tuple(inputs), strict=False)
    except Exception:  # noqa: BLE001 - whatever the operator does that export cannot follow
        return ()
    return nodes(exported)


def nodes(exported: torch.export.ExportedProgram) -> tuple[Node, ...]:
    """The exported graph as records; a parameter or buffer is named as in `state_dict`."""
    names = {
        s.arg.name: str(s.target) for s in exported.graph_signature.input_specs if s.kind in STATE
    }
    graph = [_node(n, names) for n in exported.graph.nodes if n.op != "get_attr"]
    if exported.call_spec.out_spec.is_leaf():  # the graph returns a tuple even of one tensor
        (returned,) = graph[-1].args
        graph[-1] = replace(graph[-1], args=tuple(returned))  # type: ignore[arg-type]
    return tuple(graph)


def _node(node: torch.fx.Node, names: Mapping[str, str]) -> Node:
    kind = {"placeholder": "input", "output": "output"}.get(node.op) or _call(node.target)
    result = node.meta.get("val")
    single = isinstance(result, torch.Tensor)
    arguments = () if kind == "input" else node.args
    return Node(
        name=names.get(node.name, node.name),
        op="parameter" if node.name in names else kind,
        args=tuple(_plain(a, names) for a in arguments),
        kwargs={k: _plain(v, names) for k, v in node.kwargs.items()},
        shape=tuple(int(n) for n in result.shape) if single else (),
        dtype=_dtype(result) if single else _scalar(result),
    )


def _call(target: Any) -> str:
    """`aten.softmax.int`, or the plain name of a Python function such as `getitem`."""
    return str(target) if isinstance(target, torch._ops.OpOverload) else target.__name__  # noqa: SLF001


def _scalar(result: object) -> str:
    """The type of an input that is no tensor, such as `int`; empty for anything else."""
    return type(result).__name__ if isinstance(result, (bool, int, float, str)) else ""


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _plain(value: object, names: Mapping[str, str]) -> object:
    """`value` as JSON knows it; another node's result as `{"node": NAME}`."""
    if isinstance(value, torch.fx.Node):
        return {"node": names.get(value.name, value.name)}
    if isinstance(value, (list, tuple)):
        return tuple(_plain(v, names) for v in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value).removeprefix("torch.")
