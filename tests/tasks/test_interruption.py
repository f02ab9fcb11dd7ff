import random
import subprocess
import sys
import time
from pathlib import Path

from data.store import Ledger
from tests.tasks.porting import PAIR

ROOT = Path(__file__).parents[2]
KILLS = 10


def seen(ledger: Ledger) -> dict[int, str]:
    """Step to the time at which it ended: a step done twice would have another."""
    history = ledger.history(PAIR.run_id, PAIR.operator.hash, PAIR.device.name)
    return {i.move.step: i.ended_at + i.started_at + str(i.candidate_id) for i in history}


def test_kill_9_loses_no_row_and_repeats_no_step(tmp_path: Path) -> None:
    """Killed at ten random moments and started again: what was once seen stays as it was."""
    ledger = Ledger(tmp_path)
    once: dict[int, str] = {}
    command = [sys.executable, "-m", "tests.tasks.porting", str(tmp_path)]
    for _ in range(KILLS):
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0.3, 1.2))
        process.kill()
        process.wait()
        now = seen(ledger)
        assert once.items() <= now.items()
        once = now
    subprocess.run(command, cwd=ROOT, check=True)
    final = seen(ledger)
    assert once.items() <= final.items()
    assert sorted(final) == list(range(len(final)))
    rows = ledger.connect().execute("SELECT step FROM iterations").fetchall()
    assert sorted(s for (s,) in rows) == sorted(final)
