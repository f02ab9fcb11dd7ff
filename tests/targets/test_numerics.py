"""The comparison, tried with cheats and with honest kernels (JUDGE.md, section 3)."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 - as everybody writes it
from torch.utils._python_dispatch import TorchDispatchMode

from data.records import Contract, Operator, Policy
from targets.remote.continuous import Continuous
from targets.remote.draws import DrawInput, draw
from targets.remote.numerics import Expected, compare, expected, structure
from targets.remote.operator import LoadedOperator
from targets.remote.oracle import to_bfloat16, to_tf32

STRICT = Contract()
K = 8192

TEMPLATE = """
import torch
from torch import nn
import torch.nn.functional as F
{head}
class Model(nn.Module):
    def forward(self, {arguments}):
        return {body}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""


def load(arguments: str, body: str, inputs: str, head: str = "") -> LoadedOperator:
    source = TEMPLATE.format(arguments=arguments, body=body, inputs=inputs, head=head)
    return LoadedOperator(Operator(name="probe", source=source))


def goal(
    loaded: LoadedOperator, distribution: str = "zero mean", contract: Contract = STRICT
) -> tuple[Expected, list[Any]]:
    made = draw(loaded, "full", distribution, 3)
    exp = expected(loaded, made, contract)
    assert exp is not None
    return exp, made.inputs


def of(loaded: LoadedOperator, *inputs: object, contract: Contract = STRICT) -> Expected:
    made = DrawInput(shape="full", distribution="zero mean", inputs=list(inputs), state={})
    exp = expected(loaded, made, contract)
    assert exp is not None
    return exp


def product(k: int = K) -> LoadedOperator:
    return load("a, b", "a @ b", f"torch.randn(48, {k}), torch.randn({k}, 48)")


def summed_singly(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A product accumulated in float32, one k at a time: slow but honest."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total.addcmul_(a[:, k : k + 1], b[k : k + 1])
    return total


@pytest.mark.parametrize("inputs", ["randn", "rand"])
def test_honest_sequential_float32_sum_passes(inputs: str) -> None:
    """The most plain kernel, 8192 terms one after the other, stays below a quarter of the limit."""
    torch.manual_seed(1)
    a, b = getattr(torch, inputs)(48, K), getattr(torch, inputs)(K, 48)
    found = compare(of(product(), a, b), [summed_singly(a, b)], STRICT)
    assert found.ok
    assert found.error is not None
    assert found.error < 20


@pytest.mark.parametrize("rounding", [to_bfloat16, to_tf32, lambda t: t.half().float()])
def test_lower_precision_inside_a_float32_product_is_refused(
    rounding: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """bfloat16, TF32 and half operands differ by over 100 times the reference's own error."""
    exp, (a, b) = goal(product())
    found = compare(exp, [rounding(a) @ rounding(b)], STRICT)
    assert not found.ok
    assert found.error is not None
    assert found.error > 145


def test_three_products_of_split_precision_pass() -> None:
    """Three TF32 products make a float32 one, and that is no downgrade."""
    exp, (a, b) = goal(product())
    high_a, high_b = to_tf32(a), to_tf32(b)
    low_a, low_b = to_tf32(a - high_a), to_tf32(b - high_b)
    assert compare(exp, [high_a @ high_b + high_a @ low_b + low_a @ high_b], STRICT).ok


def test_policy_allows_what_it_names_and_no_more() -> None:
    """Under `tf32` bfloat16 fails, under `half` it passes and 3 bits of mantissa fail."""
    loaded = product(512)
    tf32, half = Contract(policy=Policy.TF32), Contract(policy=Policy.HALF)
    exp, (a, b) = goal(loaded, contract=tf32)
    assert compare(exp, [to_tf32(a) @ to_tf32(b)], tf32).ok
    assert compare(exp, [summed_singly(a, b)], tf32).ok
    assert not compare(exp, [to_bfloat16(a) @ to_bfloat16(b)], tf32).ok
    exp, (a, b) = goal(loaded, contract=half)
    assert compare(exp, [to_bfloat16(a) @ to_bfloat16(b)], half).ok
    coarse = [t.to(torch.float8_e4m3fn).float() for t in (a, b)]
    assert not compare(exp, [coarse[0] @ coarse[1]], half).ok


def test_zeros_are_refused_where_outputs_are_near_zero() -> None:
    """A mean over 131,072 columns is below any absolute tolerance; its norm is not."""
    exp, _ = goal(load("x", "x.mean(1)", "torch.randn(16, 1 << 17)"))
    found = compare(exp, [torch.zeros(16)], STRICT)
    assert not found.ok
    assert "all are 0" in found.located


def test_nan_is_never_a_wildcard() -> None:
    """One NaN is refused and located, whatever else is right."""
    loaded = load("x", "torch.relu(x)", "torch.randn(40, 50)")
    exp, (x,) = goal(loaded)
    wrong = torch.relu(x)
    wrong[7, 9] = math.nan
    found = compare(exp, [wrong], STRICT)
    assert not found.ok
    assert "1 of 2000 elements wrong, first at [7, 9], 1 NaN" in found.located
    assert not compare(exp, [torch.full_like(x, math.nan)], STRICT).ok


def test_legal_infinities_are_compared_by_place_and_sign() -> None:
    """A masked output holds -inf: it must be there, with its sign, and nowhere else."""
    body = "x.masked_fill(torch.triu(torch.ones(9, 9), 1).bool(), float('-inf'))"
    exp, (x,) = goal(load("x", body, "torch.randn(9, 9)"))
    right = x.masked_fill(torch.triu(torch.ones(9, 9), 1).bool(), -math.inf)
    assert compare(exp, [right], STRICT).ok
    assert not compare(exp, [right.abs().mul(x.sign())], STRICT).ok
    assert not compare(exp, [right.nan_to_num(neginf=-3e38)], STRICT).ok
    assert not compare(exp, [right.masked_fill(right == -math.inf, math.nan)], STRICT).ok


def test_draw_whose_reference_overflows_does_not_count() -> None:
    """exp(100) is infinite in float32 only: nobody can be judged by that."""
    loaded = load("x", "torch.exp(x)", "torch.randn(8, 8)")
    assert expected(loaded, draw(loaded, "full", "shifted by 100", 1), STRICT) is None


def test_last_column_unwritten_is_refused_and_located() -> None:
    """A tail that no thread reached is named by its axis and its start."""
    exp, (x,) = goal(load("x", "x * 2", "torch.randn(61, 1000)"))
    wrong = x * 2
    wrong[:, 992:] = 0
    found = compare(exp, [wrong], STRICT)
    assert not found.ok
    assert "only the last 8 of 1000 along axis 1 (from index 992 = 31 * 32)" in found.located


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y: -y, "sign flipped"),
        (lambda y: y * 1.01, "off by a factor of 1.01"),
        (lambda y: y + 0.5, "off by one constant"),
        (lambda y: torch.full_like(y, 0.3), "all are the same"),
    ],
)
def test_wholly_wrong_output_is_described(
    change: Callable[[torch.Tensor], torch.Tensor], words: str
) -> None:
    """The generator learns how a wrong output relates to the right one."""
    exp, (x,) = goal(load("x", "torch.sin(x)", "torch.randn(64, 64)"))
    found = compare(exp, [change(torch.sin(x))], STRICT)
    assert not found.ok
    assert words in found.located


def test_feedback_never_holds_an_expected_value() -> None:
    """Indices and counts only: no value of the exact output is printed."""
    loaded = load("x", "torch.sin(x)", "torch.randn(3, 3)")
    exp, (x,) = goal(loaded)
    found = compare(exp, [torch.sin(x).roll(1, 0)], STRICT)
    for value in torch.sin(x).flatten().tolist():
        assert f"{abs(value):.3f}"[1:] not in found.located


def test_one_wrong_slice_of_a_half_output_is_refused() -> None:
    """In bfloat16 a wrong row hides in the norm; the slice shows it."""
    loaded = load(
        "a, b",
        "F.gelu(a @ b)",
        "torch.randn(512, 256).bfloat16(), torch.randn(256, 512).bfloat16()",
    )
    exp, (a, b) = goal(loaded)
    right = F.gelu(a.float() @ b.float()).bfloat16()
    assert compare(exp, [right], STRICT).ok
    wrong = right.clone()
    wrong[3] = wrong[3] * 1.25
    assert not compare(exp, [wrong], STRICT).ok
    assert not compare(exp, [(right.float() * 1.05).bfloat16()], STRICT).ok


def test_exact_output_has_no_zero_tolerance() -> None:
    """ReLU is exact in float32 (e0 = 0): one rounding more is still right, 1 % is not."""
    exp, (x,) = goal(load("x", "torch.relu(x)", "torch.randn(64, 64)"))
    y = torch.relu(x)
    assert compare(exp, [y * (1 + 2**-23)], STRICT).ok
    assert not compare(exp, [y * 1.0001], STRICT).ok


def test_zero_output_has_a_floor_from_the_terms_that_cancel() -> None:
    """Where the exact answer is 0, rounding of the terms is right and more is not."""
    loaded = load("x", "x - x.mean(1, keepdim=True)", "torch.randn(16, 1000)")
    exp, (x,) = goal(loaded, "constant rows")
    assert compare(exp, [x * 2**-24], STRICT).ok
    assert not compare(exp, [x * 2**-10], STRICT).ok


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([], "0 outputs, expected 1"),
        ([torch.zeros(4, 4), torch.zeros(4, 4)], "2 outputs, expected 1"),
        ([torch.zeros(4, 1)], r"output 0 has shape \(4, 1\), expected \(4, 4\)"),
        ([torch.zeros(4, 4).double()], "output 0 has dtype float64, expected float32"),
        ([1.0], "output 0 is a float, expected a tensor"),
    ],
)
def test_wrong_structure_is_refused_before_any_value(outputs: list[object], words: str) -> None:
    """Count, type, shape and dtype come first: nothing is broadcast, cast or zipped."""
    exp, _ = goal(load("x", "x * 2", "torch.randn(4, 4)"))
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(structure(exp, outputs))
    assert not compare(exp, outputs, STRICT).ok


def test_every_output_counts() -> None:
    """A second output that is wrong is refused and named."""
    exp, (x,) = goal(load("x", "(x * 2, x.sum(1))", "torch.randn(4, 64)"))
    assert compare(exp, [x * 2, x.sum(1)], STRICT).ok
    found = compare(exp, [x * 2, x.sum(1).roll(1)], STRICT)
    assert not found.ok
    assert found.located.startswith("output 1: ")


def test_index_of_an_equal_value_is_right() -> None:
    """Ties are free; a worse element and an index out of range are not."""
    loaded = load("x", "x.argmax(1)", "torch.randn(4, 6)")
    x = torch.tensor([[1.0, 5, 5, 0, 0, 0]]).repeat(4, 1)
    exp = of(loaded, x)
    assert compare(exp, [torch.tensor([1, 2, 2, 1])], STRICT).ok
    assert not compare(exp, [torch.tensor([1, 2, 0, 1])], STRICT).ok
    assert "index outside 0 to 5" in compare(exp, [torch.tensor([1, 2, 6, 1])], STRICT).located
    assert not compare(exp, [torch.tensor([1, 2, -1, 1])], STRICT).ok


def test_quantised_value_may_differ_by_a_step_at_ties_only() -> None:
    """At x.5 both neighbours are right; away from it one step is wrong, at ties two are."""
    loaded = load("x", "torch.round(x).clamp(-128, 127).to(torch.int8)", "torch.randn(4, 6)")
    x = torch.full((4, 6), 2.2)
    x[0, 0] = 3.5
    exp = of(loaded, x)
    right = torch.round(x).to(torch.int8)
    at_tie, off_tie, two = right.clone(), right.clone(), right.clone()
    at_tie[0, 0], off_tie[1, 1], two[0, 0] = 3, 3, 2
    assert compare(exp, [right], STRICT).ok
    found = compare(exp, [at_tie], STRICT)
    assert found.ok
    assert found.located == "1 of 24 elements one step off, all at ties"
    assert not compare(exp, [off_tie], STRICT).ok
    assert not compare(exp, [two], STRICT).ok


def test_boolean_may_differ_at_the_threshold_only() -> None:
    """A comparison decided by the last bit of a sum is free; others are not."""
    loaded = load("x", "x.sum(1) > 0", "torch.randn(5, 4096)")
    torch.manual_seed(0)
    x = torch.randn(5, 4096)
    x[2, -1] -= x[2].double().sum().float()
    exp = of(loaded, x)
    answer = x.double().sum(1) > 0
    assert compare(exp, [answer], STRICT).ok
    wrong = answer.clone()
    wrong[0] = ~wrong[0]
    assert not compare(exp, [wrong], STRICT).ok
    free = answer.clone()
    free[2] = ~free[2]
    assert compare(exp, [free], STRICT).ok


def test_constants_made_in_the_forward_do_not_spoil_the_oracle() -> None:
    """Casts to float32 inside the reference stay in float64 for the exact output."""
    body = "(x.float() * torch.full((8,), 0.5, dtype=torch.float32)).softmax(-1).to(x.dtype)"
    exp, (x,) = goal(load("x", body, "torch.randn(8, 8)"))
    truth = (x.double() * 0.5).softmax(-1)
    content = exp.goals[0].content
    assert isinstance(content, Continuous)
    assert float((content.exact.values - truth).abs().max()) < 1e-15


class Batches(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """Images in each convolution in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.convolution.default and args[0].dtype is torch.float64:
            self.seen.add(len(args[0]))
        return func(*args, **(kwargs or {}))


def test_the_oracle_convolves_one_image_at_a_time() -> None:
    """Else float64 unfolds the whole batch: 18 GB at the size of a real call."""
    loaded = load("x", "F.conv2d(x, x[:1, :, :7, :7])", "torch.randn(6, 3, 20, 20)")
    with Batches() as convolved:
        exp, (x,) = goal(loaded)
    assert convolved.seen == {1}
    content = exp.goals[0].content
    assert isinstance(content, Continuous)
    wide = x.double()
    truth = F.conv2d(wide, wide[:1, :, :7, :7])
    assert float((content.exact.values - truth).abs().max()) < 1e-11


def test_reference_without_float64_form_gets_fixed_limits() -> None:
    """Where the reference insists on float32, the norm-relative limit of the table holds."""
    head = "def cast(x):\n    return torch.from_numpy(x.numpy().astype('float32'))"
    exp, (x,) = goal(load("x", "cast(x) * 2", "torch.randn(64, 64)", head))
    assert compare(exp, [x * 2 * (1 + 1e-7)], STRICT).ok
    assert not compare(exp, [to_bfloat16(x * 2)], STRICT).ok


def test_batch_norm_is_judged_from_the_state_of_the_draw() -> None:
    """Running statistics change in a forward; each comparison starts from the draw's own."""
    source = TEMPLATE.format(head="", arguments="x", body="self.n(x)", inputs="torch.randn(32, 8)")
    init = "def __init__(self):\n        super().__init__()\n        self.n = nn.BatchNorm1d(8)\n"
    source = source.replace("def forward", init + "    def forward")
    loaded = LoadedOperator(Operator(name="probe", source=source))
    made = draw(loaded, "full", "zero mean", 3)
    before = {k: v.clone() for k, v in made.state.items()}
    first, second = (expected(loaded, made, STRICT) for _ in range(2))
    assert all(torch.equal(made.state[k], before[k]) for k in before)
    assert first is not None
    assert second is not None
    y = F.batch_norm(
        made.inputs[0], None, None, before["n.weight"], before["n.bias"], training=True
    )
    assert compare(first, [y], STRICT).ok
    assert compare(second, [y], STRICT).ok


def test_chosen_indices_are_distinct_where_the_references_are() -> None:
    """Of equal values any order is right, but none may be chosen twice."""
    loaded = load("x", "torch.topk(x, 3, dim=1)[1]", "torch.randn(4, 6)")
    x = torch.tensor([[5.0, 5, 5, 5, 0, 0]]).repeat(4, 1)
    exp = of(loaded, x)
    assert compare(exp, [torch.tensor([[3, 1, 0]]).repeat(4, 1)], STRICT).ok
    found = compare(exp, [torch.tensor([[3, 1, 3]]).repeat(4, 1)], STRICT)
    assert not found.ok
    assert "index chosen twice: 4 of 12 elements wrong, first at [0, 2]" in found.located


def test_float32_sums_of_half_inputs_have_float32_limits() -> None:
    """A plain float32 accumulation is right there, one in the half type is not."""
    loaded = load("x", "x.float().sum(1)", "torch.randn(32, 4096).bfloat16()")
    exp, (x,) = goal(loaded)
    total = torch.zeros(32)
    for k in range(x.shape[1]):
        total += x[:, k].float()
    assert compare(exp, [total], STRICT).ok
    assert not compare(exp, [x.sum(1).float()], STRICT).ok


def test_plain_sum_of_equal_terms_is_no_fault_of_a_norm() -> None:
    """Steps that all round the same way would refuse a LayerNorm of constant rows."""
    loaded = load("x", "F.layer_norm(x, (x.shape[1],))", "torch.randn(64, 1999)")
    exp, (x,) = goal(loaded, "constant rows")
    total = torch.zeros(64, 1)
    for k in range(x.shape[1]):
        total += x[:, k : k + 1]
    centred = x - total / x.shape[1]
    found = compare(exp, [centred * (centred.square().mean(1, True) + 1e-5).rsqrt()], STRICT)
    assert found.ok, found.located
