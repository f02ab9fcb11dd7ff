"""A command as an agent: its words are the reply, its faults are the world's."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from agents.budget import Budget
from agents.external import Command
from agents.generator import LlmGenerator
from agents.reply import ParseStatus
from data.errors import BudgetError, ModelError
from tests.agents.test_generator import ANSWER, GOOD, request

MESSAGES = [{"role": "system", "content": "rules"}, {"role": "user", "content": "write µ"}]


def program(folder: Path, code: str, *, deadline_s: float = 20.0) -> Command:
    path = folder / "agent.py"
    path.write_text("import os, sys, time\n" + code)
    return Command(line=f"{sys.executable} {path}", deadline_s=deadline_s)


async def test_the_prompt_goes_in_and_the_reply_comes_out(tmp_path: Path) -> None:
    """All messages on stdin, the role in the environment, stdout whole; the cost is unknown."""
    echo = program(tmp_path, "print(os.environ['KFORGE_ROLE'], sys.stdin.read())")
    call = await echo.ask("generator", MESSAGES)
    assert call.reply == "generator rules\n\nwrite µ\n\n"
    assert (call.role, call.cost_usd, call.model) == ("generator", None, echo.name)
    assert str(tmp_path) not in call.model


async def test_a_kernel_of_a_command_is_a_candidate_of_its_own_kind(tmp_path: Path) -> None:
    """The same parser and repair turn as for a model; the row does not call it one."""
    (tmp_path / "answer.md").write_text(ANSWER)
    good = program(tmp_path, f"print(open({str(tmp_path / 'answer.md')!r}).read())")
    made = (await LlmGenerator(good.ask).propose(request())).candidate
    assert made is not None
    assert (made.source, made.agent_kind, made.agent_name) == (GOOD, "command", good.name)


async def test_a_late_command_is_killed_with_what_it_started(tmp_path: Path) -> None:
    """Back by the deadline; no process of it is left."""
    late = program(
        tmp_path,
        f"import subprocess; p = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid)); time.sleep(60)",
        deadline_s=3.0,
    )
    started = time.monotonic()
    with pytest.raises(ModelError, match="no reply within 3 s"):
        await late.ask("generator", MESSAGES)
    assert time.monotonic() - started < 10
    await asyncio.sleep(0.2)
    status = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("sys.exit('no licence')", "ended with status 1: no licence"),
        ("os.write(1, b'x' * (2 << 20))", "more than 1048576 bytes"),
        ("os.kill(os.getpid(), 9)", "ended with status -9: no message"),
    ],
)
async def test_its_faults_are_one_line(tmp_path: Path, code: str, said: str) -> None:
    """Never a reply, never asked again."""
    with pytest.raises(ModelError, match=said) as caught:
        await program(tmp_path, code).ask("generator", MESSAGES)
    assert not caught.value.retryable


async def test_a_command_that_is_not_there() -> None:
    """The place to look is named."""
    with pytest.raises(ModelError, match=r"No such file or directory; check \[commands\]"):
        await Command(line="/nowhere/agent", deadline_s=5).ask("generator", MESSAGES)


async def test_words_that_are_no_text_are_a_class(tmp_path: Path) -> None:
    """Broken UTF-8 is what the parser says it is, not a crash."""
    broken = program(tmp_path, "os.write(1, b'class ModelNew \\xff')")
    proposal = await LlmGenerator(broken.ask).propose(request())
    assert proposal.candidate is not None
    assert proposal.candidate.parse_status == ParseStatus.INVALID_TEXT


async def test_its_calls_count_and_a_secret_stays_here(tmp_path: Path) -> None:
    """A spent budget refuses before the command runs; values of secret variables are cut."""
    os.environ["TEST_API_KEY"] = "canary-77e1"
    try:
        counted = Command(
            line=program(tmp_path, "print(sys.stdin.read(), os.environ['TEST_API_KEY'])").line,
            deadline_s=20,
            budget=Budget(calls=1, usd=None),
        )
        call = await counted.ask("generator", [{"role": "user", "content": "key canary-77e1"}])
        assert "canary-77e1" not in repr(call)
        with pytest.raises(BudgetError):
            await counted.ask("generator", MESSAGES)
    finally:
        del os.environ["TEST_API_KEY"]
