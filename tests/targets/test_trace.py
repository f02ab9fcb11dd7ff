"""The graph that agents see: ATen calls as plain data, sizes that differ by shape marked."""

from data.codec import dumps, loads
from data.records import Node, Operator
from targets.remote.operator import LoadedOperator
from targets.remote.trace import trace

SOURCE = """
import torch
from torch import nn
SHAPES = {"small": {"rows": 5, "cols": 12}, "full": {"rows": 8, "cols": 16}}
class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(cols))
    def forward(self, x):
        if BRANCH:
            return x
        return torch.softmax(self.net(x), dim=-1) / x.shape[0]
def get_inputs(rows=8, cols=16):
    return [torch.randn(rows, cols)]
def get_init_inputs(rows=8, cols=16):
    return [cols]
"""


def loaded(branch: str = "False") -> LoadedOperator:
    return LoadedOperator(Operator(name="op", source=SOURCE.replace("BRANCH", branch)))


def test_calls_are_not_decomposed_and_parameters_have_their_names() -> None:
    """A layer norm stays one node, its weight is named as in `state_dict`."""
    graph = trace(loaded(), "full")
    assert [n.op for n in graph] == [
        "parameter", "parameter", "input", "aten.layer_norm.default", "aten.softmax.int",
        "aten.div.Tensor", "output",
    ]  # fmt: skip
    assert graph[0].name == "net.0.weight"
    assert graph[3].args[2] == {"node": "net.0.weight"}
    assert graph[4].shape == (8, 16)
    assert graph[4].dtype == "float32"


def test_a_number_that_is_a_size_is_marked() -> None:
    """Eight rows at this shape are five at another: the graph says which size it is."""
    division = next(n for n in trace(loaded(), "full") if n.op == "aten.div.Tensor")
    assert division.args[1] == {"size": "x", "dim": 0}


def test_graph_crosses_the_process_border() -> None:
    """Nodes are plain data."""
    for node in trace(loaded(), "full"):
        assert loads(Node, dumps(node)) == node


def test_an_operator_that_cannot_be_traced_gives_no_graph() -> None:
    """Control flow on values is legal in an operator: agents go without a graph then."""
    assert trace(loaded("x.sum() > 0"), "full") == ()
