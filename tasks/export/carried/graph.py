"""What a module computes at one size, as text that is equal for equal computations."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx

from .kernel import Signature


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The ATen calls of a module."""

    text: str
    state: tuple[str, ...]
    """Names of its parameters and buffers in the order in which they are used."""


def graph(module: nn.Module, inputs: Sequence[Signature]) -> Graph | None:
    """The module at this size, alike in training and not; None where it cannot be told.

    Nothing is computed: the tensors have no memory. Whatever looks at values cannot be traced.
    """
    with _modes(module):
        found = [_traced(module.train(mode), inputs) for mode in (True, False)]
    return found[0] if found[0] == found[1] else None


@contextmanager
def _modes(module: nn.Module) -> Iterator[None]:
    """The training flags as before afterwards."""
    before = [(m, m.training) for m in module.modules()]
    try:
        yield
    finally:
        for each, training in before:
            each.training = training


def _traced(module: nn.Module, inputs: Sequence[Signature]) -> Graph | None:
    state = module.state_dict(keep_vars=True)
    names, structure = list(state), list[str]()

    def call(*tensors: Any) -> Any:
        own = dict(zip(names, tensors[len(inputs) :], strict=True))
        result = functional_call(module, own, tuple(tensors[: len(inputs)]))
        structure.append(type(result).__name__)
        return result

    given = [torch.empty(shape, dtype=dtype, device="meta") for dtype, shape in inputs]
    held = [torch.empty_like(t, device="meta", requires_grad=False) for t in state.values()]
    try:
        with torch.no_grad():
            traced = make_fx(call)(*given, *held)
    except Exception:  # noqa: BLE001  (another's code may raise anything: then nothing is said)
        return None
    return _told(traced.graph, len(inputs), names, structure[0])


def _told(graph: fx.Graph, inputs: int, names: list[str], structure: str) -> Graph | None:
    placed = [n for n in graph.nodes if n.op == "placeholder"]
    state = dict(zip(placed[inputs:], names, strict=True))
    labels: dict[fx.Node, str] = {node: f"input{i}" for i, node in enumerate(placed[:inputs])}
    used: list[str] = []

    def label(node: fx.Node) -> str:
        if node not in labels:  # a parameter, met for the first time
            labels[node] = f"state{len(used)}"
            used.append(state[node])
        return labels[node]

    lines = []
    for number, node in enumerate(n for n in graph.nodes if n.op != "placeholder"):
        if node.op not in {"call_function", "output"}:
            return None
        arguments = fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: _Name(label(n)))
        labels[node] = f"value{number}"
        lines.append(f"{labels[node]} = {node.target}{arguments} -> {_meta(node)}")
    spare = sorted(set(names) - set(used))
    return Graph(text="\n".join((*lines, structure)), state=(*used, *spare))


class _Name(str):
    """A label that shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _meta(node: fx.Node) -> str:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{list(value.shape)}"
    return type(value).__name__
