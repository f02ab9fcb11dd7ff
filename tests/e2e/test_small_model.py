"""A real small model behind a real endpoint: the contract and the loop hold, whatever it writes.

Opt-in, with the endpoint and its model's name in the environment (docs/agents.md):
`KFORGE_LLM_BASE=http://127.0.0.1:18099/v1 KFORGE_LLM_MODEL=openai/qwen pytest -m llm tests/e2e`.
`--basetemp DIR` keeps its ledger.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from agents.excerpt import estimate
from agents.prompt import COMPACT
from agents.reply import ParseStatus
from data.store import Ledger
from data.verdict import Verdict

ROOT = Path(__file__).parents[2]
OPERATORS = ("relu", "row_sum", "softplus", "softmax", "scale_bias_clamp", "tanh_gelu_gate")
BASE = os.environ.get("KFORGE_LLM_BASE")
CALLS = 4

pytestmark = [
    pytest.mark.llm,
    pytest.mark.skipif(BASE is None, reason="KFORGE_LLM_BASE names no endpoint"),
    pytest.mark.timeout(4 * 3600),
]


def test_a_campaign_with_a_small_model_ends_and_is_on_record(tmp_path: Path) -> None:
    """Unattended to its end: few calls, small prompts, a verdict for each answer, no cost made up.

    What it finds is printed (`pytest -s`): it is the model's, and nothing is asserted about it
    but that a kernel which is right was accepted.
    """
    runs = tmp_path / "runs"
    done = subprocess.run(_command(tmp_path), cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr[-2000:])
    assert done.returncode == 0, done.stderr
    connection = Ledger(runs).connect()
    _check_calls(connection)
    _check_rows(connection)


def _command(folder: Path) -> list[str]:
    crew = folder / "crew.toml"
    crew.write_text("max_tokens = 900\ndeadline_s = 1200\n")
    command = [str(Path(sys.executable).with_name("kforge")), "port", *OPERATORS]
    command += ["--device", "cpu", "--engine", "local", "--runs", str(folder / "runs")]
    command += ["--agents", "llm", "--model", os.environ.get("KFORGE_LLM_MODEL", "openai/local")]
    command += ["--api-base", str(BASE), "--crew", str(crew), "--compact", "--parallel", "2"]
    return [*command, "--calls", str(CALLS), "--steps", str(CALLS), "--usd", "1"]


def _check_calls(connection: duckdb.DuckDBPyConnection) -> None:
    """At most four a pair, each prompt small, every answer with its class."""
    counted = "SELECT operator_hash, count(*) FROM llm_calls GROUP BY ALL"
    counts = dict(connection.execute(counted).fetchall())
    assert len(counts) == len(OPERATORS)
    assert max(counts.values()) <= CALLS
    asked = "SELECT prompt, parse_status, cost_usd, completion_tokens FROM llm_calls"
    for prompt, status, cost, tokens in connection.execute(asked).fetchall():
        assert sum(estimate(m["content"]) for m in json.loads(prompt)) <= COMPACT
        assert status
        assert cost is None
        assert tokens > 0


def _check_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """A verdict each; no code is the form's fault, anything else was judged."""
    asked = "SELECT operator, mode, verdict, parse_status, reason FROM iterations ORDER BY ALL"
    rows = connection.execute(asked).fetchall()
    assert {operator for operator, *_ in rows} == set(OPERATORS)
    for _, _, verdict, status, reason in rows:
        assert Verdict(verdict)
        assert (verdict == Verdict.NO_CODE) == (status != ParseStatus.OK)
        assert reason or verdict in (Verdict.CORRECT, Verdict.FASTER)
    right = (Verdict.CORRECT, Verdict.FASTER)
    found = {o for o, mode, v, *_ in rows if mode != "confirm" and v in right}
    confirmed = {o for o, mode, *_ in rows if mode == "confirm"}
    assert found == confirmed
