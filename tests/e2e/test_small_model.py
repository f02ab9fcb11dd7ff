"""A real small model behind a real endpoint: the contract and the loop hold, whatever it writes.

Opt-in, with the endpoint and its model's name in the environment (docs/agents.md):
`KFORGE_LLM_BASE=http://127.0.0.1:18099/v1 KFORGE_LLM_MODEL=openai/qwen pytest -m llm tests/e2e`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.excerpt import estimate
from agents.prompt import COMPACT
from data.store import Ledger

ROOT = Path(__file__).parents[2]
OPERATOR = Path(__file__).parent / "clamped.py"
BASE = os.environ.get("KFORGE_LLM_BASE")
CALLS = 4

pytestmark = [
    pytest.mark.llm,
    pytest.mark.skipif(BASE is None, reason="KFORGE_LLM_BASE names no endpoint"),
    pytest.mark.timeout(3600),
]


def test_a_campaign_with_a_small_model_ends_and_is_on_record(tmp_path: Path) -> None:
    """At most four calls, each prompt small, every answer with its class, no cost invented."""
    crew = tmp_path / "crew.toml"
    crew.write_text("max_tokens = 900\ndeadline_s = 1200\n")
    command = [str(Path(sys.executable).with_name("kforge")), "port", str(OPERATOR)]
    command += ["--device", "cpu", "--engine", "local", "--runs", str(tmp_path / "runs")]
    command += ["--agents", "llm", "--model", os.environ.get("KFORGE_LLM_MODEL", "openai/local")]
    command += ["--api-base", str(BASE), "--crew", str(crew), "--compact", "--calls", str(CALLS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    connection = Ledger(tmp_path / "runs").connect()
    asked = "SELECT prompt, parse_status, cost_usd, completion_tokens FROM llm_calls"
    calls = connection.execute(asked).fetchall()
    assert 1 <= len(calls) <= CALLS
    for prompt, status, cost, tokens in calls:
        first = [m["content"] for m in json.loads(prompt) if m["role"] in ("system", "user")][:2]
        assert sum(map(estimate, first)) <= COMPACT
        assert status
        assert cost is None
        assert tokens > 0
    rows = connection.execute("SELECT count(*), count(verdict) FROM iterations").fetchall()
    assert rows[0][0] == rows[0][1] >= 1
