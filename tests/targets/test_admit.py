"""Operators that cannot tell right from wrong are refused before anything is spent on them."""

from dataclasses import replace
from pathlib import Path

import pytest

from data.records import Admission, Card, Contract, Operator, Policy
from data.verdict import Outcome
from targets.remote.admit import Terms, admit

CARD = Card(peak_gb_s=10.0, peak_tflop_s={"float32": 0.1}, cache_mib=1)

TEMPLATE = """
import torch
from torch import nn
import torch.nn.functional as F
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}
    def forward(self, x):
        return {body}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""


def source(body: str, inputs: str = "torch.randn(64, 32)", init: str = "pass") -> str:
    return TEMPLATE.format(body=body, inputs=inputs, init=init)


TERMS = Terms(contract=Contract(), card=CARD, environment={"torch": "2"})


def admitted(text: str, terms: Terms = TERMS) -> Admission:
    return admit(Operator(name="probe", source=text), terms)


def share(admission: Admission) -> float:
    assert admission.oracle is not None
    assert admission.oracle.share is not None
    return admission.oracle.share


SOUND = source("F.gelu(self.fc(x))", init="self.fc = nn.Linear(32, 48)")


def test_sound_operator_is_admitted_with_all_that_is_known() -> None:
    """Sizes, floor, parameters, card and strength come with the admission."""
    admission = admitted(SOUND)
    assert admission.admitted
    assert share(admission) == 1.0
    (shape,) = admission.shapes
    assert (shape.name, shape.inputs[0].shape, shape.outputs[0].shape) == (
        "full",
        (64, 32),
        (64, 48),
    )
    assert shape.moved_bytes == 4 * (64 * 32 + 32 * 48 + 48 + 64 * 48)
    assert shape.floor_us == pytest.approx(shape.moved_bytes / 10e3)
    assert [p.name for p in admission.parameters] == ["fc.weight", "fc.bias"]
    assert admission.card is CARD
    assert admission.environment == {"torch": "2"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("x.mean(1, keepdim=True) - x.mean(1, keepdim=True)", "zeros"),
        ("torch.zeros_like(x) + 3", "one constant"),
        ("x.clone()", "the input itself"),
        ("F.softmax(x[:, :1], dim=1)", "the answer to another input"),
    ],
)
def test_operator_that_accepts_a_trivial_answer_is_refused(body: str, words: str) -> None:
    """Constant, zero, identity and input-blind outputs cannot be judged."""
    admission = admitted(source(body))
    assert admission.outcome is Outcome.NOT_ADMITTED
    assert admission.reason.startswith("ill-posed: the comparison accepts")
    assert words in admission.reason


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (source("x @ x"), "Model.forward fails"),
        (source("x / 0 * 0"), "not finite for its own inputs"),
        (source("x + torch.rand_like(x)"), "it is random"),
        (source("F.dropout(x, 0.5)"), "it is random"),
        ("import nothing_of_this_name", "the file fails with ModuleNotFoundError"),
        (source("x", inputs="undefined"), "get_inputs fails with NameError"),
    ],
)
def test_invalid_reference_is_refused_with_its_reason(text: str, words: str) -> None:
    """A reference that fails, is random or is not finite is nobody's candidate's fault."""
    admission = admitted(text)
    assert admission.outcome is Outcome.NOT_ADMITTED
    assert admission.reason.startswith("invalid reference: ")
    assert words in admission.reason
    assert "\n" not in admission.reason


def test_too_large_operator_is_refused_without_allocating_it() -> None:
    """A call of 240 GB is sized, not made."""
    admission = admitted(source("x * 2", inputs="torch.randn(30000, 1000000)"))
    assert admission.outcome is Outcome.TOO_LARGE
    assert "240.00 GB" in admission.reason
    assert "limit is 1.00 GB" in admission.reason


def test_a_call_is_too_long_by_the_measured_peak() -> None:
    """16 GFLOP are judged at 0.33 TFLOP/s, 31 GFLOP are refused without a call."""
    card = Card(peak_gb_s=10.0, peak_tflop_s={"float32": 0.33})
    terms = replace(TERMS, card=card)
    assert admitted(source("x @ x", "torch.randn(2000, 2000)"), terms).admitted
    refused = admitted(source("x @ x", "torch.randn(2500, 2500)"), terms)
    assert refused.outcome is Outcome.TOO_LARGE
    assert "31 GFLOP" in refused.reason


def test_too_large_intermediate_is_refused() -> None:
    """Small inputs and outputs do not make a call small."""
    admission = admitted(source("(x[:, None] - x[None]).abs().sum(1)", "torch.randn(65536, 32)"))
    assert admission.outcome is Outcome.TOO_LARGE
    assert "on its way" in admission.reason


def test_dropout_module_is_silenced_and_marked() -> None:
    """Dropout in training mode is repaired, not refused."""
    admission = admitted(source("self.d(x) * 2", init="self.d = nn.Dropout(0.3)"))
    assert admission.admitted
    assert "dropout of d set to 0" in admission.marks


def test_parameter_without_effect_is_marked() -> None:
    """A bias that a batch norm takes away is algebra, and not refused."""
    text = source(
        "self.n(self.fc(x))", init="self.fc = nn.Linear(32, 16); self.n = nn.BatchNorm1d(16)"
    )
    admission = admitted(text)
    assert admission.admitted
    assert "parameter fc.bias redundant" in admission.marks
    assert not any("n.weight" in mark or "n.bias" in mark for mark in admission.marks)


def test_hidden_precision_is_marked() -> None:
    """Where a residual hides the product at every scale, precision stays undecided."""
    admission = admitted(source("x * 1e6 + self.fc(x)", init="self.fc = nn.Linear(32, 32)"))
    assert admission.admitted
    assert "precision undecided" in admission.marks
    assert share(admission) < 1


def at(baseline_us: float) -> Terms:
    return replace(TERMS, timed=lambda _: baseline_us)


def test_baseline_at_the_floor_leaves_no_headroom() -> None:
    """Within 10 % of the floor nothing is spent; above it the operator is admitted."""
    text = source("x * 2", inputs="torch.randn(1024, 1024)")
    floor = 2 * 4 * 1024 * 1024 / 10e3
    refused = admitted(text, at(floor * 1.05))
    assert refused.outcome is Outcome.NOT_ADMITTED
    assert refused.reason.startswith("no headroom: the baseline is within 5% of the roofline floor")
    assert admitted(text, at(floor * 1.5)).admitted
    below = admitted(text, at(floor * 0.5))
    assert below.admitted
    assert below.shapes[0].floor_us is None
    assert "baseline below the floor at 'full': cached, or a wrong count" in below.marks


def test_a_product_near_the_librarys_own_peak_is_marked_not_refused() -> None:
    """The peak was measured with the library's product: near it a kernel may still win."""
    text = source("self.fc(x)", "torch.randn(512, 1024)", "self.fc = nn.Linear(1024, 1024)")
    text += "\ndef flops():\n    return 2 * 512 * 1024 * 1024\n"
    floor = 2 * 512 * 1024 * 1024 / 0.1e6
    found = admitted(text, at(floor * 1.05))
    assert found.admitted, found.reason
    assert "baseline within 10% of the library's own peak: little headroom" in found.marks


def test_seeing_operator_sees_every_planted_fault() -> None:
    """The built-in softmax shows tails, scale, sign and lower precision."""
    path = Path(__file__).parents[2] / "data" / "operators" / "softmax.py"
    admission = admitted(path.read_text())
    assert admission.admitted
    assert share(admission) == 1.0
    assert {s.name for s in admission.shapes} >= {"small", "full"}
    assert all(s.flops and s.floor_us for s in admission.shapes)


def test_a_cut_that_real_values_refuse_is_no_fault_of_the_operator() -> None:
    """Class indices beyond a halved number of classes: the probes stay at the official shape."""
    source = """
import torch
from torch import nn

CLASSES = 4096

class Model(nn.Module):
    def forward(self, predictions, targets):
        return nn.functional.cross_entropy(predictions, targets)

def get_inputs():
    return [torch.rand(4096, CLASSES), torch.randint(0, CLASSES, (4096,))]

def get_init_inputs():
    return []
"""
    admission = admitted(source, replace(TERMS, card=Card(peak_gb_s=20.0)))
    assert admission.admitted, admission.reason


def test_a_branch_that_official_inputs_hide_is_taken_at_a_larger_scale() -> None:
    """A judgement then draws at that scale; a branch that nothing takes is named."""
    hidden = admitted(source("self.fc(x).clamp(-8, 8)", init="self.fc = nn.Linear(32, 16)"))
    assert hidden.oracle is not None
    assert "branch clamp 1 hidden from the official inputs" in hidden.marks
    assert hidden.scales
    dead = admitted(source("F.relu(torch.sigmoid(x)) * 2"))
    assert "dead branch relu 1" in dead.marks


def test_a_slightly_lower_precision_counts_as_a_fault() -> None:
    """The planted downgrade is TF32, the next one below float32, not bfloat16."""
    text = source(
        "self.fc(x).sigmoid().sum(1)", "torch.rand(64, 512)", "self.fc = nn.Linear(512, 4096)"
    )
    admission = admitted(text)
    assert admission.oracle is not None
    assert admission.oracle.precision_scale != 1.0


def test_official_inputs_that_accept_zeros_are_marked() -> None:
    """All zero by the recipe's own values, sound with others: admitted, and said."""
    admission = admitted(source("F.relu(x - 2)", "torch.rand(64, 32)"))
    assert admission.admitted
    assert any(mark.startswith("official inputs alone accept") for mark in admission.marks)


def test_an_operator_too_large_for_the_device_is_probed_when_asked() -> None:
    """Its outcome stays; the report says how well it could be judged."""
    slow = replace(TERMS, card=Card(peak_gb_s=10.0, peak_tflop_s={"float32": 1e-7}))
    assert admitted(SOUND, slow).oracle is None
    insisted = admitted(SOUND, replace(slow, insist=True))
    assert insisted.outcome is Outcome.TOO_LARGE
    assert insisted.oracle is not None
    ill = admitted(source("(x @ x.T) * 0"), replace(slow, insist=True))
    assert ill.outcome is Outcome.TOO_LARGE
    assert "not admitted elsewhere: ill-posed" in ill.reason


def test_findings_are_kept_by_content(tmp_path: Path) -> None:
    """A second admission probes nothing; other terms probe again."""
    terms = replace(TERMS, cache=tmp_path)
    first = admitted(SOUND, terms)
    (kept,) = (tmp_path / "admissions").iterdir()
    kept.write_text(kept.read_text().replace('"dead": []', '"dead": ["told"]'))
    again = admitted(SOUND, terms)
    assert again.oracle is not None
    assert again.oracle.dead == ("told",)
    assert replace(again, oracle=first.oracle, seconds=first.seconds) == first
    admitted(SOUND, replace(terms, contract=Contract(policy=Policy.TF32)))
    assert len(list((tmp_path / "admissions").iterdir())) == 2
