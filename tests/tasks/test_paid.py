"""Money: never more than allowed, never twice for one reply."""

import asyncio
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from data.errors import ModelError
from data.store import Ledger
from tests.agents.scripted_server import Fault, Reply, ScriptedServer
from tests.tasks.paying import crew, numbered, ported, subject

ROOT = Path(__file__).parents[2]
CAP_USD = 1.0


def prompts(ledger: Ledger) -> list[str]:
    """Of all calls on record."""
    rows = ledger.connect().execute("SELECT prompt FROM llm_calls").fetchall()
    return [prompt for (prompt,) in rows]


async def test_eight_pairs_in_parallel_never_exceed_one_dollar(tmp_path: Path) -> None:
    """Calls in flight are reserved at their worst case; what is left is used, not overdrawn."""
    ledger = Ledger(tmp_path)
    with ScriptedServer(generator=[numbered()], analyst=["no advice"]) as server:
        shared = crew(server.url, campaign_usd=CAP_USD)
        done = await asyncio.gather(
            *(ported(subject(i, steps=20), shared, ledger) for i in range(8))
        )
        costs = ledger.costs_of_run(subject(0).run_id)
        assert server.count == len(costs)
        again = await asyncio.gather(
            *(ported(subject(i, steps=20), shared, ledger) for i in range(8))
        )
        assert server.count == len(costs), "a spent campaign asked again"
    spent = sum(cost or 0.0 for cost in costs)
    assert CAP_USD - 0.2 < spent <= CAP_USD
    assert [h[-1].verdict for h in done] == [h[-1].verdict for h in again]


async def test_a_pair_has_its_own_limits(tmp_path: Path) -> None:
    """Three calls are three requests, those on record included after a new start."""
    with ScriptedServer(generator=[numbered()], analyst=["no advice"]) as server:
        for _ in range(2):
            await ported(subject(0, steps=9), crew(server.url, calls=3), Ledger(tmp_path))
            assert server.count == 3


def test_a_killed_run_never_pays_a_reply_twice(tmp_path: Path) -> None:
    """Killed at a random moment: a reply that was on record is never asked for again."""
    ledger = Ledger(tmp_path)
    with ScriptedServer(generator=[numbered()], analyst=["no advice"]) as server:
        command = [sys.executable, "-m", "tests.tasks.paying", str(tmp_path), server.url]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while server.count < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.2))
        process.kill()
        process.wait()
        known = set(prompts(ledger))
        asked = len(server.bodies)
        assert len(known) >= 2
        subprocess.run(command, cwd=ROOT, check=True, timeout=120)
        paid = prompts(ledger)
        assert len(set(paid)) == len(paid), "a reply was paid twice"
        assert len(paid) > len(known)
        assert asked <= len(server.bodies) <= len(paid) + 1  # one was under way when it died


async def test_the_next_model_is_asked_when_one_is_down(tmp_path: Path) -> None:
    """In order, and only after what may pass; the row says which one answered."""
    models = ("openai/first", "openai/second")
    script: list[Reply] = [Fault.SERVER_ERROR, Fault.SERVER_ERROR, numbered()]
    with ScriptedServer(generator=script) as server:
        history = await ported(
            subject(0, steps=1), crew(server.url, models=models), Ledger(tmp_path)
        )
        assert [body["model"] for body in server.bodies] == ["first", "first", "second"]
    (call,) = history[0].calls
    assert (call.model, call.attempts) == ("openai/second", 1)


async def test_a_refused_key_asks_no_other_model(tmp_path: Path) -> None:
    """A fault that does not pass is the person's to mend, not the next model's to hide."""
    with ScriptedServer(generator=[Fault.REFUSED_KEY]) as server:
        asked = crew(server.url, models=("openai/first", "openai/second"))
        with pytest.raises(ModelError, match="refused the key"):
            await ported(subject(0, steps=1), asked, Ledger(tmp_path))
        assert server.count == 1
