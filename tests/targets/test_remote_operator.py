"""The operator's own code, as the judge loads it."""

import pytest
import torch

from data.records import Operator
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.sizing import sizes

PLAIN = """
import torch
import torch.nn as nn
ROWS = 8
class Model(nn.Module):
    def __init__(self, width, rate=0.5):
        super().__init__()
        self.linear = nn.Linear(width, 4)
        self.drop = nn.Dropout(rate)
    def forward(self, x):
        return self.drop(self.linear(x))
def get_inputs():
    return [torch.rand(ROWS, 16)]
def get_init_inputs():
    return {init}
"""

SHAPED = """
import torch
from torch import nn
OUTPUT = "float"
DOMAINS = ["real"]
SHAPES = {"small": {"rows": 3, "cols": 5}, "full": {"rows": 7, "cols": 5}}
class Model(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs(rows=7, cols=5):
    return [torch.randn(rows, cols)]
def get_init_inputs(rows=7, cols=5):
    return []
def flops(rows=7, cols=5):
    return rows * cols
"""


def load(source: str) -> LoadedOperator:
    return LoadedOperator(Operator(name="probe", source=source))


def plain(init: str = "[16]") -> LoadedOperator:
    return load(PLAIN.replace("{init}", init))


def test_inputs_depend_on_the_seed_alone() -> None:
    """The same seed gives the same inputs, and the caller's random numbers are left alone."""
    loaded = plain()
    torch.manual_seed(3)
    undisturbed = torch.rand(1)
    torch.manual_seed(3)
    first, again, other = (loaded.inputs("full", s)[0] for s in (1, 1, 2))
    assert torch.equal(torch.rand(1), undisturbed)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("init", ["[16, 0.5]", "[[16], {'rate': 0.5}]", "[[], {'width': 16}]"])
def test_constructor_arguments_come_by_position_in_every_form(init: str) -> None:
    """Candidates are made with a plain list, whatever form the file uses."""
    assert plain(init).init_args("full") == [16, 0.5]


def test_dropout_does_not_make_the_reference_random() -> None:
    """Dropout is set to 0, stays in training mode, and the repair is on record."""
    loaded = plain()
    model = loaded.model("full", 0)
    x = loaded.inputs("full", 0)[0]
    assert model.training
    assert torch.equal(model(x), model(x))
    assert loaded.silenced == ("drop",)


def test_declared_shapes_reach_all_functions() -> None:
    """A shape's keywords are the arguments of inputs and counts; an unknown one is a fault."""
    loaded = load(SHAPED)
    assert loaded.inputs("small", 0)[0].shape == (3, 5)
    assert loaded.flops("full") == 35.0
    assert loaded.moved_bytes("full") is None
    with pytest.raises(OperatorFault, match="no shape 'tall'; known: small, full"):
        loaded.inputs("tall", 0)


def test_derived_shape_is_named_by_what_it_changes() -> None:
    """The recipe runs at another size, also where its sizes are literals."""
    loaded = plain()
    assert loaded.inputs("full, leading 8 as 3", 0)[0].shape == (3, 16)
    assert sizes(loaded, "full, leading 8 as 3").outputs[0].shape == (3, 4)
    with pytest.raises(OperatorFault, match="forward fails"):
        sizes(loaded, "full, 16 as 5")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import torch\nraise ValueError('no')", "the file fails with ValueError: no"),
        ("import torch", "does not define Model, get_inputs, get_init_inputs"),
        (PLAIN.replace("{init}", "[]"), "Model fails with TypeError"),
    ],
)
def test_broken_file_says_what_is_broken(source: str, words: str) -> None:
    """Whatever the operator's code raises becomes one sentence."""
    with pytest.raises(OperatorFault, match=words):
        load(source).model("full", 0)


def test_sizes_of_a_huge_operator_cost_no_memory() -> None:
    """A call of 400 GB is sized without being made."""
    huge = SHAPED.replace('"cols": 5}}', '"cols": 5}, "huge": {"rows": 10**5, "cols": 10**6}}')
    assert sizes(load(huge), "huge").bytes == 8 * 10**11
