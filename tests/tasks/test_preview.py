"""A dry run shows what would be sent, to the letter, and what it could cost."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agents.llm import LlmClient
from agents.price import Price
from agents.prompt import generator_messages
from data.records import Mode, Settings
from tasks.preview import previewed
from tests.agents.test_generator import ADMISSION, BROKEN, PAIR, RIGHT, request

ROOT = Path(__file__).parents[2]
CLIENT = LlmClient(model="openai/local", api_base="http://127.0.0.1:1/v1", max_tokens=1000)


def test_the_messages_are_those_that_are_sent() -> None:
    """The first step and a mend; without a price nothing is said of cost."""
    for asked in (request(), request(Mode.FIX, BROKEN)):
        shown = previewed(CLIENT, asked)
        assert list(shown.messages) == generator_messages(asked)
        assert (shown.role, shown.worst_usd) == ("generator", None)
        assert shown.prompt_tokens
        assert shown.prompt_tokens > 100


def test_the_worst_case_is_what_is_reserved() -> None:
    """Two tokens for each estimated one, and the whole room of the answer."""
    price = Price(input=1e-6, output=1e-5)
    shown = previewed(replace(CLIENT, price=price), request())
    assert shown.prompt_tokens
    assert shown.worst_usd == pytest.approx(2e-6 * shown.prompt_tokens + 1e-2, rel=1e-3)


def test_an_optimising_step_begins_with_the_analyst() -> None:
    """What the generator gets rests on an answer that nobody has given yet."""
    right = replace(RIGHT, build=BROKEN.build)
    asked = request(Mode.OPTIMISE, right)
    shown = previewed(CLIENT, asked)
    assert shown.role == "analyst"
    assert "time_us" in shown.messages[1]["content"]


def test_a_given_kernel_is_judged_before_anybody_is_asked() -> None:
    """It is said, not guessed."""
    settings = Settings(start="class ModelNew: ...")
    asked = replace(request(), pair=replace(PAIR, settings=settings), admission=ADMISSION)
    asked = replace(asked, move=replace(asked.move, mode=Mode.TRANSLATE))
    assert "judged first" in previewed(CLIENT, asked).why_none


@pytest.mark.e2e
def test_the_command_prints_the_prompt_for_a_gpu_that_is_not_here(tmp_path: Path) -> None:
    """Shapes, limits of the device and the example are there; nothing is written or sent."""
    command = [str(Path(sys.executable).with_name("kforge")), "port", "softmax", "--device", "h200"]
    command += ["--agents", "llm", "--model", "openai/gpt-5", "--dry-run", "--runs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for part in (
        "===== softmax@h200, step 0, create: to the generator",
        "input0 float32[4096, 2048] -> output0 float32[4096, 2048]",
        "roofline floor 14 us",
        "4800 GB/s",
        "232448 bytes of shared memory a group",
        "A kernel for it that was accepted:",
        "USD at worst",
    ):
        assert part in done.stdout
    assert "avx" not in done.stdout
    assert "nothing was sent" in done.stderr
