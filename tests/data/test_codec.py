"""Records survive the way over JSON, and what is no record does not pass for one."""

import json
from dataclasses import replace

import pytest

from data import codec
from data.records import Contract, Device, Iteration, LlmCall, MeasureJob, Mode, Move, Node, Timing
from data.verdict import Outcome, Verdict
from tests.data.samples import CPU, RELU, call, plain, rich, timing


@pytest.mark.parametrize("value", [rich(), plain(), call(), timing(), CPU, RELU, Contract()])
def test_round_trip(value: object) -> None:
    """What comes back is equal and of the same types."""
    back = codec.loads(type(value), codec.dumps(value))
    assert back == value
    assert repr(back) == repr(value)


@pytest.mark.parametrize("verdict", [*Verdict, *Outcome])
def test_verdicts_and_outcomes_come_back_as_such(verdict: Verdict | Outcome) -> None:
    """A union of enums finds the right one."""
    back = codec.loads(Iteration, codec.dumps(plain(verdict=verdict)))
    assert back.verdict is verdict


def test_nested_arguments_of_a_node_come_back_as_tuples() -> None:
    """Free-form fields keep their nesting; lists become tuples as in the record."""
    node = Node(name="n", op="aten.sum", args=({"node": "x"}, (1, (2, None))), kwargs={"k": True})
    assert codec.loads(Node, codec.dumps(node)) == node


def test_job_with_parent_and_defaults_comes_back() -> None:
    """None and defaults are kept apart from values."""
    job = MeasureJob(operator=RELU, device=CPU, contract=Contract(), source="s", seed=7)
    assert codec.loads(MeasureJob, codec.dumps(job)) == job


def test_numbers_without_a_point_are_floats_where_floats_are_meant() -> None:
    """JSON of other programs writes 2 for 2.0."""
    record = codec.encode(timing()) | {"ratio": 2}
    assert codec.decode(Timing, record).ratio == 2.0


def test_infinity_and_nan_survive() -> None:
    """An error ratio may be infinite; it must not become an exception in a pipe."""
    back = codec.loads(Timing, codec.dumps(timing(null_us=float("inf"))))
    assert back.null_us == float("inf")


def test_unknown_fields_of_a_newer_version_are_passed_over() -> None:
    """Rows of a newer version stay readable."""
    assert codec.decode(Contract, codec.encode(Contract()) | {"later": 1}) == Contract()


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        (Device, {"name": "cpu"}),
        (Device, codec.encode(CPU) | {"name": 7}),
        (Device, codec.encode(CPU) | {"index": "0"}),
        (Contract, {"policy": "exact"}),
        (LlmCall, codec.encode(call()) | {"cost_usd": "free"}),
        (Move, {"mode": "create", "step": True, "lineage": ["a"]}),
    ],
)
def test_what_is_no_record_is_refused(kind: type[object], record: dict[str, object]) -> None:
    """A child cannot smuggle a value of another type into a record."""
    with pytest.raises((TypeError, ValueError)):
        codec.loads(kind, json.dumps(record))


def test_illegal_combinations_are_refused_on_the_way_in() -> None:
    """The rules of `__post_init__` hold for decoded records as well."""
    record = codec.encode(plain()) | {"speedup": 2.0, "baseline": None}
    with pytest.raises(ValueError, match="without its baseline"):
        codec.decode(Iteration, record)


def test_modes_are_enums_again() -> None:
    """`is` comparisons of the strategy hold after a resume."""
    move = replace(plain().move, mode=Mode.CONFIRM)
    assert codec.loads(Move, codec.dumps(move)).mode is Mode.CONFIRM
