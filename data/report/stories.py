"""The story of each pair, step by step, as a chunk that is unpacked when somebody opens it."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from data.report.packing import Json, chunk, plain
from data.report.scope import Scope

STEPS = 60_000
"""Steps told at most: more are a million rows' sources to read."""
BYTES = 16_000_000
"""Of all stories: a page of twice that opens in a second and can still be mailed."""
FULL = 0.8
LOT = 20_000
"""Steps that are read at once: each lot goes through all texts of the ledger."""
SOURCE = 60_000
"""Characters of one source; KernelBench's longest is 7,000."""
PAIR = ("run_id", "operator_hash", "device", "contract")

_SQL = Path(__file__).parent
_LEFT_OUT = {*PAIR, "iteration_id", "profile"}
_TIMES = (
    "shape",
    "baseline",
    "ratio",
    "low",
    "high",
    "candidate_us",
    "baseline_us",
    "floor_us",
    "warm",
    "allocation",
)
ROOF = (
    "arithmetic_intensity",
    "achieved_gflop_s",
    "achieved_gb_s",
    "peak_gb_s",
    "peak_gflop_s",
    "bandwidth_share",
    "compute_share",
    "time_over_floor",
)
"""What a roofline plot needs of a profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One pair, ready for the page."""

    packed: str
    steps: int
    roof: dict[str, float] | None
    """Of the latest step with a profile; None where nothing was timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What belongs to a lot's steps, by `iteration_id`."""

    sources: dict[str, str]
    times: dict[str, list[Json]]


def stories(scope: Scope, pairs: pa.Table) -> Iterator[Story]:
    """The stories of the first pairs, in their order, until the page has as much as it may hold."""
    size = 0
    for lot in _lots(pairs):
        if size > FULL * BYTES:
            return  # not worth to go through all texts again
        for story in _told(scope, lot):
            size += len(story.packed)
            if size > BYTES:
                return
            yield story


def _lots(pairs: pa.Table) -> Iterator[pa.Table]:
    """The pairs' keys in lots of some thousand steps."""
    start = lot = total = 0
    for n, steps in enumerate(pairs.column("steps").to_pylist()):
        if lot and (lot + steps > LOT or total + steps > STEPS):
            yield pairs.select(list(PAIR)).slice(start, n - start)
            start, lot = n, 0
        if total + steps > STEPS:
            return
        lot, total = lot + steps, total + steps
    if lot:
        yield pairs.select(list(PAIR)).slice(start)


def _told(scope: Scope, lot: pa.Table) -> Iterator[Story]:
    """The stories of a lot, in its order."""
    scope.connection.register("lot", lot)
    steps, sources, times = (_asked(scope, name) for name in ("steps", "sources", "times"))
    scope.connection.unregister("lot")
    known = Known(
        sources={r["iteration_id"]: r["source"] for r in sources}, times=defaultdict(list)
    )
    for row in times:
        known.times[row["iteration_id"]].append([plain(row[name]) for name in _TIMES])
    by_pair = {key: list(found) for key, found in groupby(steps, _key)}
    for pair in lot.to_pylist():
        found = by_pair[_key(pair)]
        yield Story(packed=chunk(_story(found, known)), steps=len(found), roof=_roof(found))


def _asked(scope: Scope, name: str) -> list[dict[str, Json]]:
    rows: list[dict[str, Json]] = scope.asked(
        (_SQL / f"{name}.sql").read_text(encoding="utf-8")
    ).to_pylist()
    return rows


def _key(row: dict[str, Json]) -> tuple[str, ...]:
    return tuple(row[name] for name in PAIR)


def _story(steps: list[dict[str, Json]], known: Known) -> Json:
    """The pair's steps; sources and environments once, steps hold their index."""
    sources: dict[str, int] = {}
    environments: dict[str, int] = {}
    told = []
    for step in steps:
        row = {n: plain(v) for n, v in step.items() if n not in _LEFT_OUT and v not in (None, [])}
        row["source"] = _indexed(sources, known.sources.get(step["iteration_id"]))
        row["environment"] = _indexed(environments, step["environment"])
        row["advice"] = _parsed(step["advice"])
        row["times"] = known.times.get(step["iteration_id"], [])
        told.append(row)
    return {
        "steps": told,
        "sources": [plain(_cut(source)) for source in sources],
        "environments": [_parsed(text) for text in environments],
    }


def _indexed(known: dict[str, int], text: str | None) -> int | None:
    return None if text is None else known.setdefault(text, len(known))


def _cut(source: str) -> str:
    """A source that is not longer than the page wants, cut in the middle."""
    if len(source) <= SOURCE:
        return source
    half = SOURCE // 2
    return f"{source[:half]}\n... {len(source) - SOURCE} characters cut ...\n{source[-half:]}"


def _parsed(text: str | None) -> Json:
    try:
        return plain(json.loads(text)) if text else None
    except ValueError:
        return None


def _roof(steps: list[dict[str, Json]]) -> dict[str, float] | None:
    """The roofline figures of the latest step that has them all."""
    for step in reversed(steps):
        metrics = _parsed(step["profile"]) or []
        found = {m["name"]: m["value"] for m in metrics if m["name"] in ROOF}
        if {"achieved_gb_s", "peak_gb_s"} <= found.keys():
            return found
    return None
