"""Runs of KernelBench as rows: what its folders tell, and nothing that they do not.

RUNS/NAME/level_L_problem_P_sample_S_kernel.py    kernels (its scripts/generate_samples.py)
RUNS/NAME/generation_config.yaml                  model and language
RUNS/NAME/eval_results.json                       what its scripts/eval_from_generations.py found

Another judge found these results against a baseline and under a contract that the folder does not
name. So their `execution` is `imported` and their `contract` `unknown`; they have no `speedup` (the
times stand in `environment`), and no verdict of ours: a kernel found right there is UNVERIFIED.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import MisuseError
from data.records import Mode, Operator, digest
from data.rows import Row
from data.schema import ITERATIONS, VERSION
from data.verdict import Verdict

IMPORTED = "imported"
"""`execution` of rows whose results another judge found."""
UNKNOWN = "unknown"
RESULTS = "eval_results.json"
_KERNEL = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
_SETTING = re.compile(r"^(\w+): *['\"]?([^'\"\n]*?)['\"]? *$", re.MULTILINE)
_NOTHING = {"", "null", "None", "-1", "-1.0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One kernel of a run and what is on record of it."""

    run: str
    level: int | None
    problem: int
    number: int
    source: str | None
    result: dict[str, Any] | None
    """The entry of eval_results.json; None when the kernel was not evaluated."""
    settings: dict[str, str]
    """Of generation_config.yaml; empty without one."""


def runs(folder: Path) -> list[Path]:
    """The run folders that `folder` is or holds."""
    return [f for f in (folder, *sorted(folder.iterdir())) if f.is_dir() and _is_run(f)]


def rows(run: Path, suite: Sequence[Operator] = ()) -> list[Row]:
    """Rows of `iterations` for one run folder; MisuseError when its results cannot be read.

    With the suite an operator has its true name, source hash and family.
    """
    return [_row(sample, _operator(sample, suite)) for sample in _samples(run)]


def _is_run(folder: Path) -> bool:
    names = (path.name for path in folder.iterdir())
    return any(name == RESULTS or _KERNEL.fullmatch(name) for name in names)


def _samples(run: Path) -> Iterator[Sample]:
    settings = _settings(run)
    kernels = {
        (int(found[2]), int(found[3])): (int(found[1]), path)
        for path in run.iterdir()
        if (found := _KERNEL.fullmatch(path.name))
    }
    results = _results(run)
    level = settings.get("level", "")
    for problem, number in sorted(kernels.keys() | results.keys()):
        known, path = kernels.get(
            (problem, number), (int(level) if level.isdigit() else None, None)
        )
        yield Sample(
            run=run.resolve().name,
            level=known,
            problem=problem,
            number=number,
            source=path.read_text(encoding="utf-8", errors="replace") if path else None,
            result=results.get((problem, number)),
            settings=settings,
        )


def _settings(run: Path) -> dict[str, str]:
    """The plain values of the run's configuration, which is flat."""
    path = run / "generation_config.yaml"
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return {name: value for name, value in _SETTING.findall(text) if value not in _NOTHING}


def _results(run: Path) -> dict[tuple[int, int], dict[str, Any]]:
    """The entries by problem and sample; older runs hold one entry a problem instead of a list."""
    path = run / RESULTS
    if not path.exists():
        return {}
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        listed = {int(p): e if isinstance(e, list) else [e] for p, e in held.items()}
        return {
            (problem, int(entry.get("sample_id", 0))): entry
            for problem, entries in listed.items()
            for entry in entries
        }
    except (OSError, ValueError, AttributeError, TypeError) as error:
        said = " ".join(str(error).split())
        raise MisuseError(
            f"cannot read {path}: {said}; expected KernelBench's results by problem"
        ) from error


def _operator(sample: Sample, suite: Sequence[Operator]) -> Operator:
    """The suite's operator; without it one that is known by its number alone."""
    name = f"level{sample.level or ''}_{sample.problem}"
    found = next((o for o in suite if f"{o.name}_".startswith(f"{name}_")), None)
    return found or Operator(name=name, source=f"KernelBench {name}", level=sample.level)


def _row(sample: Sample, operator: Operator) -> Row:
    record = json.dumps({"judge": "KernelBench", "run": sample.run, "result": sample.result})
    facts = _facts(sample)
    language = sample.settings.get("backend", UNKNOWN)
    device = facts.get("hardware", UNKNOWN)
    known = {
        "schema_version": VERSION,
        "run_id": f"{IMPORTED}-{sample.run}",
        "operator": operator.name,
        "operator_hash": operator.hash,
        "device": device,
        "contract": UNKNOWN,
        "lineage": "a",
        "step": sample.number,
        "epoch": IMPORTED,
        "suite": "kernelbench",
        "vendor": device.split()[0].lower(),
        "family": operator.family,
        "mode": Mode.CREATE.value,
        "execution": IMPORTED,
        "needs_review": False,
        "candidate_id": digest(language, sample.source) if sample.source else None,
        "source": sample.source or None,
        "source_id": digest(sample.source) if sample.source else None,
        "language": language,
        "agent_kind": "llm" if "model_name" in sample.settings else UNKNOWN,
        "agent_name": "KernelBench",
        "model": sample.settings.get("model_name"),
        "build_ok": (sample.result or {}).get("compiled"),
        "environment": json.dumps(facts),
        "record": record,
        **_found(sample.result, facts),
    }
    listed: Row = {name: [] for name in ITERATIONS.schema.names if name in _LISTS}
    key = digest(*(str(known[n]) for n in ("run_id", "operator_hash", "step")), record)
    return dict.fromkeys(ITERATIONS.schema.names) | listed | known | {"iteration_id": key}


_LISTS = frozenset(
    {"parent_ids", "techniques", "techniques_added", "techniques_detected", "library_ops"}
)


def _found(result: dict[str, Any] | None, facts: dict[str, str]) -> dict[str, str]:
    """Verdict and reason, in which KernelBench is named as the judge."""
    if result is None:
        return {"verdict": Verdict.UNVERIFIED, "reason": "KernelBench: not evaluated"}
    told = facts.get("error") or facts.get("correctness_issue") or ""
    if not result.get("compiled"):
        return {"verdict": Verdict.BUILD_FAILED, "reason": f"KernelBench: {told or 'not compiled'}"}
    if not result.get("correctness"):
        verdict = Verdict.CRASHED if facts.get("error") else Verdict.WRONG
        return {"verdict": verdict, "reason": f"KernelBench: {told or 'not correct'}"}
    trials = facts.get("correctness_trials", "unknown")
    timed = f"{facts['runtime_ms']} ms" if "runtime_ms" in facts else "not timed"
    reason = f"KernelBench: right in trials {trials}, {timed}; baseline and contract unknown"
    return {"verdict": Verdict.UNVERIFIED, "reason": reason}


def _facts(sample: Sample) -> dict[str, str]:
    """What the entry tells, as text by name; times in ms, as KernelBench takes them."""
    result = sample.result or {}
    told = result.get("metadata") or {}
    stats = result.get("runtime_stats") or {}
    facts = {
        "judge": "KernelBench",
        "correct": result.get("correctness"),
        "hardware": told.get("hardware") or stats.get("hardware"),
        "correctness_trials": told.get("correctness_trials"),
        "correctness_issue": told.get("correctness_issue"),
        "error": told.get("compilation_error") or told.get("runtime_error"),
        "runtime_ms": result.get("runtime"),
        "runtime_std_ms": stats.get("std"),
        "ref_runtime_ms": result.get("ref_runtime"),
        "precision": sample.settings.get("precision"),
    }
    return {n: " ".join(str(v).split())[:500] for n, v in facts.items() if str(v) not in _NOTHING}
