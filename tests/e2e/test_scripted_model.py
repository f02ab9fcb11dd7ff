"""Both agents on a model behind a real HTTP endpoint, with the real compiler, judge and ledger."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from data.store import Ledger
from tests.agents.scripted_server import ScriptedServer, closed_port

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
OPERATOR = Path(__file__).parent / "clamped.py"
MODULE = """A kernel.

```python
import torch
from torch import nn
from kforge_launch import kernels

K = kernels(r'''
extern "C" void clamped(const float* x, float* y, long n) {{
{body}
}}
''')


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        K.clamped(args=(x, y, x.numel()))
        return y
```
"""
ONE = "float v = x[i] * 2.0f + 1.0f; y[i] = v < 0.0f ? 0.0f : (v > 6.0f ? 6.0f : v);"
BROKEN = MODULE.format(body="  for (long i = 0; i < n; ++i) y[i] = scale * x[i];")
WRONG = MODULE.format(body=f"  for (long i = 0; i < n - 5; ++i) {{ {ONE} }}")
SLOW = MODULE.format(
    body="for (long r = 0; r < 8; ++r) for (volatile long j = 0; j < n; ++j)"
    f" {{ long i = j; {ONE} }}"
)
FAST = MODULE.format(
    body=f"#pragma omp parallel for simd\n  for (long i = 0; i < n; ++i) {{ {ONE} }}"
)
CITED = re.compile(r"^(time_us) \| ([\d.e+]+) \|", re.MULTILINE)


def advice(prompt: str) -> str:
    """An advice that rests on a number of the prompt, as a good analyst's does."""
    found = CITED.search(prompt)
    assert found, "the analyst was shown no time"
    return json.dumps(
        {
            "bottleneck": "latency",
            "evidence": [{"metric": found[1], "value": float(found[2])}],
            "change": "use every thread and vector instructions in one pass",
            "technique": "vectorize",
            "parameters": [],
            "expected_gain": 4.0,
            "confidence": 0.9,
        }
    )


def port(runs: Path, url: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("kforge")),
        *("port", str(OPERATOR), "--device", "cpu"),
        *("--agents", "llm", "--model", "openai/scripted", "--api-base", url),
        *("--engine", "local", "--runs", str(runs), "--steps", "4", "--json", *more),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_loop_mends_and_speeds_up_a_models_kernel(
    tmp_path: Path, warmed: Callable[[Path], Path]
) -> None:
    """Does not compile, wrong, slow, fast: verdicts in order, and each prompt has what it needs."""
    warmed(tmp_path / ".cache")
    replies = [BROKEN, WRONG, SLOW, FAST]
    with ScriptedServer(generator=[*replies], analyst=[advice]) as model:
        done = port(tmp_path, model.url)
        assert done.returncode == 0, done.stderr
        prompts, advised = model.prompts("generator"), model.prompts("analyst")
        spent = model.count
        again = port(tmp_path, model.url)
        assert again.returncode == 0
        assert model.count == spent, "a paid reply was paid again"
    rows = Ledger(tmp_path).connect().execute("SELECT verdict, mode FROM iterations ORDER BY step")
    verdicts = [v for v, _ in rows.fetchall()]
    assert verdicts[:3] == ["BUILD_FAILED", "WRONG", "CORRECT"]
    assert verdicts[3] in ("CORRECT", "FASTER")
    assert "scale" in prompts[1]
    assert "was not declared" in prompts[1]
    assert "wrong" in prompts[2].lower()
    assert advised
    assert "bandwidth_share" in advised[0] or "time_us" in advised[0]
    assert "use every thread and vector instructions in one pass" in prompts[3]
    usage = (
        Ledger(tmp_path)
        .connect()
        .execute("SELECT count(*), sum(prompt_tokens), count(cost_usd) FROM llm_calls")
    )
    count, tokens, priced = usage.fetchall()[0]
    assert count == spent
    assert tokens > 0
    assert priced == 0, "nobody knows this model's price"


def kforge(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("kforge")), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.long  # a minute; tests/tasks/test_replay.py has the rest
def test_a_campaign_is_recorded_and_replayed_without_its_model(
    tmp_path: Path, warmed: Callable[[Path], Path]
) -> None:
    """Real compiler, judge and times: the same verdicts; a changed prompt is named and ends it."""
    first, second, file = tmp_path / "first", tmp_path / "second", tmp_path / "r.json"
    for runs in (first, second):
        warmed(runs / ".cache")
    with ScriptedServer(generator=[WRONG, FAST]) as model:
        assert port(first, model.url, "--steps", "2").returncode == 0
    (run_id,) = [f.stem for f in (first / "campaigns").glob("*.json")]
    done = kforge("ledger", "record", run_id, str(file), "--runs", str(first))
    assert "3 steps and 2 replies of openai/scripted" in done.stdout, done.stderr
    again = ("--engine", "local", "--runs", str(second))
    done = kforge("replay", str(file), *again)
    assert done.returncode == 0, done.stderr
    assert "a replay of openai/scripted: nobody is asked, nothing is paid" in done.stderr
    steps = "SELECT step, mode, verdict IN ('CORRECT', 'FASTER') FROM iterations ORDER BY step"
    ran = [Ledger(r).connect().execute(steps).fetchall() for r in (first, second)]
    assert ran[0] == ran[1]
    file.write_text(file.read_text().replace("Write a first kernel", "Write the first kernel"))
    done = kforge("replay", str(file), *again)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert "clamped@cpu, step 0, lineage a, generator: another prompt is on record" in said
    assert "recorded 'Write the first kernel" in said
    assert "now 'Write a first kernel" in said


def test_a_dead_endpoint_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    """Nobody listens: exit 1, one line that names the endpoint, no traceback."""
    base = closed_port()
    done = port(tmp_path, base)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"no answer from {base}: connection refused" in done.stderr.splitlines()[-1]
