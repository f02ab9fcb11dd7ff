"""Records as rows of the ledger's tables, and back."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from data import codec
from data.records import Iteration, LlmCall, Move, Pair, RunResult, Timing, digest
from data.schema import ITERATIONS, LLM_CALLS, VERSION, Table

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKey:
    """The place of an LLM call: a step of a pair and the role that was asked."""

    run_id: str
    operator_hash: str
    device: str
    contract: str
    lineage: str
    step: int
    role: str


def call_key(pair: Pair, move: Move, role: str) -> CallKey:
    """The key of the calls that `role` makes for one move of a pair."""
    return CallKey(
        run_id=pair.run_id,
        operator_hash=pair.operator.hash,
        device=pair.device.name,
        contract=str(pair.contract),
        lineage=move.lineage,
        step=move.step,
        role=role,
    )


def to_json(value: object) -> str:
    """JSON in ASCII, so that a lone surrogate in a model's reply survives the round trip."""
    return json.dumps(codec.encode(value))


def iteration_row(iteration: Iteration) -> Row:
    """The row of `iterations`; its id is the hash of the whole record."""
    record = to_json(iteration)
    row = {
        "iteration_id": digest(record),
        **_step(iteration),
        **_finding(iteration),
        **_authorship(iteration),
        **_evidence(iteration),
        "record": record,
        "started_at": moment(iteration.started_at),
        "ended_at": moment(iteration.ended_at),
    }
    return _stored(ITERATIONS, row)


def timing_rows(iteration: Iteration, iteration_id: str) -> list[Row]:
    """One row a shape that was timed."""
    timings = iteration.run.timings if iteration.run else ()
    shared = {"iteration_id": iteration_id, **_pair(iteration)}
    shared["candidate_id"] = iteration.candidate_id
    return [{n: _storable(v) for n, v in (shared | _timing(t)).items()} for t in timings]


IN_RECORD = {"images"}
"""Fields of a call without a column: few have them, and `record` holds them all."""


def call_row(key: CallKey, sample: int, call: LlmCall) -> Row:
    """The row of `llm_calls` for the n-th call of a step and role."""
    record = to_json(call)
    row = {f: getattr(key, f) for f in CallKey.__slots__} | {
        "call_id": digest(to_json(key), str(sample), record),
        "schema_version": VERSION,
        "sample": sample,
        "price": to_json(call.price),
        "record": record,
        "started_at": moment(call.started_at),
    }
    plain = set(LlmCall.__slots__) - set(row) - IN_RECORD
    row |= {name: getattr(call, name) for name in plain}
    return _stored(LLM_CALLS, row)


def moment(text: str) -> datetime | None:
    """ISO 8601 as UTC without zone; None when it is empty or no time.

    >>> moment("2026-01-02T03:04:05+01:00")
    datetime.datetime(2026, 1, 2, 2, 4, 5)
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


def _pair(iteration: Iteration) -> Row:
    return {
        "schema_version": VERSION,
        "run_id": iteration.run_id,
        "operator": iteration.operator.name,
        "operator_hash": iteration.operator.hash,
        "device": iteration.device.name,
        "contract": str(iteration.contract),
        "lineage": iteration.move.lineage,
        "step": iteration.move.step,
    }


def _step(iteration: Iteration) -> Row:
    return _pair(iteration) | {
        "epoch": iteration.epoch,
        "suite": iteration.operator.suite,
        "vendor": iteration.device.vendor,
        "arch": iteration.device.arch,
        "family": iteration.operator.family,
        "execution": iteration.device.execution,
        "mode": iteration.move.mode.value,
    }


def _finding(iteration: Iteration) -> Row:
    return {
        "verdict": iteration.verdict.value,
        "reason": iteration.reason,
        "needs_review": iteration.needs_review,
        "baseline": iteration.baseline,
        "speedup": iteration.speedup,
        "speedup_low": iteration.speedup_low,
        "speedup_high": iteration.speedup_high,
        "gain_over_parent": iteration.gain_over_parent,
        "gain_low": _gain_bound(iteration, "parent_low"),
        "gain_high": _gain_bound(iteration, "parent_high"),
        "techniques_added": list(iteration.techniques_added),
        "techniques_detected": list(iteration.detected),
        "advice": to_json(iteration.advice) if iteration.advice else None,
        "predicted_gain": iteration.advice.expected_gain if iteration.advice else None,
        "cost_usd": _cost(iteration.calls),
    }


def _gain_bound(iteration: Iteration, side: str) -> float | None:
    """Bound of the gain over the parent: half widths of independent shapes add in quadrature."""
    gain, timings = iteration.gain_over_parent, iteration.run.timings if iteration.run else ()
    bounds = [(t.parent_ratio, getattr(t, side)) for t in timings if t.parent_ratio]
    if gain is None or not bounds or not all(bound for _, bound in bounds):
        return None
    half = math.hypot(*(math.log(bound / ratio) for ratio, bound in bounds)) / len(bounds)
    return gain * math.exp(half if side == "parent_high" else -half)


def _authorship(iteration: Iteration) -> Row:
    made = iteration.candidate
    if made is None:
        return {"parent_ids": [], "techniques": []}
    return {
        "candidate_id": iteration.candidate_id,
        "parent_ids": list(made.parents),
        "techniques": list(made.techniques),
        "source": made.source or None,
        "parameters": to_json(made.parameters),
        **{name: getattr(made, name) for name in _AS_IS},
    }


_AS_IS = (
    "reference",
    "agent_kind",
    "agent_name",
    "model",
    "prompt_hash",
    "parse_status",
    "language",
)
"""Fields of a candidate whose column has the same name and value."""


def _evidence(iteration: Iteration) -> Row:
    build, run = iteration.build, iteration.run
    return {
        "build_ok": build.ok if build else None,
        "build_seconds": build.seconds if build else None,
        "build_route": build.route if build else None,
        "run_seconds": run.seconds if run else None,
        "isolation": run.isolation or None if run else None,
        "authored": run.authored if run else None,
        "library_ops": list(run.library_ops) if run else [],
        "environment": to_json(_environment(run) | iteration.environment),
    }


def _environment(run: RunResult | None) -> dict[str, str]:
    return run.environment if run else {}


def _timing(timing: Timing) -> Row:
    return {
        "pair_ratios": list(timing.pair_ratios),
        "latencies": list(timing.samples_us),
        "others": to_json(timing.others_us),
    } | {
        name: getattr(timing, name)
        for name in set(Timing.__slots__) - {"pair_ratios", "samples_us", "others_us"}
    }


def _cost(calls: tuple[LlmCall, ...]) -> float | None:
    """Dollars of all calls; None as soon as one is unknown."""
    known = [call.cost_usd for call in calls if call.cost_usd is not None]
    return sum(known, 0.0) if len(known) == len(calls) else None


def _stored(table: Table, row: Row) -> Row:
    """The row as UTF-8 can hold it, with the ids of its long texts."""
    row = {name: _storable(value) for name, value in row.items()}
    texts = {place: row.get(column) for column, place in table.texts}
    return row | {place: text and digest(text) for place, text in texts.items()}


def _storable(value: object) -> object:
    """`value` with text that UTF-8 can hold; the record keeps the original."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_storable(v) for v in value]
    return value
