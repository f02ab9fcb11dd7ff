"""What a candidate is judged with."""

import pytest
import torch

from data.records import Contract, Operator, ShapePolicy
from targets.remote.distributions import DISTRIBUTIONS, Domain, redraw
from targets.remote.draws import HEAVY_BYTES, draw, family, heavy_shape, parameters, plan, refill
from targets.remote.operator import LoadedOperator
from targets.remote.sizing import sizes

NORM = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)
        self.linear = nn.Linear(features, features)
        self.register_buffer("mask", torch.ones(features))
    def forward(self, x):
        return self.linear(self.norm(x)) * self.mask
def get_inputs():
    return [torch.randn({rows}, 16)]
def get_init_inputs():
    return [16]
"""
FAMILY = Contract(shapes=ShapePolicy.FAMILY)


def norm(rows: int = 8) -> LoadedOperator:
    return LoadedOperator(Operator(name="norm", source=NORM.replace("{rows}", str(rows))))


def test_seed_decides_every_draw() -> None:
    """The same seed repeats the plan bit by bit; another gives other values."""
    plans = [list(plan(norm(), Contract(), seed=s, thorough=False)) for s in (5, 5, 6)]
    tensors = [[d.inputs[0] for d in p] for p in plans]
    assert all(map(torch.equal, tensors[0], tensors[1]))
    assert not any(map(torch.equal, tensors[0], tensors[2]))


def test_every_distribution_comes_with_three_seeds_when_thorough() -> None:
    """All distributions are drawn; a thorough plan draws each from three secret seeds."""
    quick = [d.distribution for d in plan(norm(), Contract(), seed=1, thorough=False)]
    thorough = list(plan(norm(), Contract(), seed=1, thorough=True))
    assert set(quick) == set(DISTRIBUTIONS)
    assert [d.distribution for d in thorough].count("zero mean") >= 3
    weights = {float(d.state["linear.weight"].sum()) for d in thorough}
    assert len(weights) >= 3


def test_constant_parameters_are_randomised_and_structure_is_kept() -> None:
    """Dropping a norm's weight or bias must show; variances stay positive, masks as made."""
    state = parameters(norm(), "full", 4)
    assert 0.15 < float(state["norm.weight"].std()) < 0.45
    assert abs(float(state["norm.weight"].mean()) - 1) < 0.3
    assert float(state["norm.bias"].std()) > 0.15
    assert float(state["norm.running_var"].min()) > 0
    assert torch.equal(state["mask"], torch.ones(16))
    assert state["norm.num_batches_tracked"].dtype is torch.int64


def test_fixed_shape_never_leaves_the_official_one() -> None:
    """A kernel made for one shape is not judged on another."""
    shapes = {d.shape for d in plan(norm(), Contract(), seed=1, thorough=True)}
    assert shapes == {"full"}


def test_family_policy_adds_odd_shapes_that_the_reference_takes() -> None:
    """Hard-coded sizes show under the family policy only."""
    loaded = norm()
    shapes = {d.shape for d in plan(loaded, FAMILY, seed=1, thorough=False)}
    assert shapes == {"full", *family(loaded)}
    rows = {sizes(loaded, s).inputs[0].shape[0] for s in shapes}
    assert len(rows) >= 6
    assert {0, 1, 127, 129} & rows
    assert any(r % 2 for r in rows)


def test_large_operator_is_probed_with_its_batch_cut() -> None:
    """Heavy draws of a large operator take a derived shape below the limit."""
    loaded = norm(rows=1 << 21)
    assert sizes(loaded, "full").bytes > HEAVY_BYTES
    assert sizes(loaded, heavy_shape(loaded)).bytes <= HEAVY_BYTES


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_draw_stays_in_its_domain(distribution: str) -> None:
    """Probabilities stay probabilities, indices indices, and fixed inputs are untouched."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.rand(6, 9).softmax(-1)
    inputs = [rows, rows.log(), torch.randint(0, 7, (6, 9)), torch.rand(6, 9) + 0.1, rows, 0.5]
    kinds = ["probability", "log_probability", "index", "positive", "fixed", "real"]
    known = tuple(Domain(k, 7 if k == "index" else 0) for k in kinds)
    probability, logs, index, positive, fixed, scalar = redraw(
        inputs, known, distribution, generator
    )
    assert bool((probability >= 0).all())
    assert torch.allclose(probability.sum(-1), torch.ones(6), atol=1e-4)
    assert torch.allclose(logs.exp().sum(-1), torch.ones(6), atol=1e-4)
    assert 0 <= int(index.min()) <= int(index.max()) < 7
    assert bool((positive > 0).all())
    assert torch.equal(fixed, rows)
    assert scalar == 0.5


def test_real_draws_show_what_the_official_one_hides() -> None:
    """Overflow, zeros, equal rows and order are all there."""
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(64, 32)
    drawn = {d: redraw([x], (Domain("real"),), d, generator)[0] for d in DISTRIBUTIONS}
    assert float(drawn["shifted by 100"].max()) > 90
    assert float(drawn["shifted by 100"].min()) < -90
    assert float(drawn["times 64"].max() - drawn["times 64"].min()) > 89
    assert abs(float(drawn["zero mean"].mean())) < 0.05
    assert float((drawn["mostly zeros"] == 0).float().mean()) > 0.6
    assert bool((drawn["constant rows"] == drawn["constant rows"][:, :1]).all())
    assert bool((drawn["sorted rows"].diff() >= 0).all())
    largest = drawn["spikes at the edges"]
    assert {0, 1, 31} <= set(largest.argmax(1).tolist())
    assert {0, 1, 62, 63} & set(largest.argmax(0).tolist())


def test_timed_calls_get_new_values_of_the_same_form() -> None:
    """A refill differs in contents only."""
    loaded = norm()
    one, two = refill(loaded, "full", 1)[0], refill(loaded, "full", 2)[0]
    assert one.shape == two.shape
    assert not torch.equal(one, two)


def test_draw_can_be_repeated_alone() -> None:
    """A draw outside a plan depends on its seed alone."""
    one, two = (draw(norm(), "full", "sorted rows", 9) for _ in range(2))
    assert torch.equal(one.inputs[0], two.inputs[0])
    assert torch.equal(one.state["linear.bias"], two.state["linear.bias"])
