"""The adapter on the wire: real litellm against a scripted server on loopback."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.analyst import response_format
from agents.budget import Budget
from agents.endpoint import ensure_reachable
from agents.images import Image
from agents.llm import MAX_TOKENS, LlmClient, Question, refuse_stolen
from agents.price import Price
from agents.redaction import redact
from data.errors import BudgetError, ContextError, ModelError
from tasks.retry import patiently
from tests.agents.scripted_server import Fault, Reply, ScriptedServer, closed_port

MESSAGES = [
    {"role": "system", "content": "You are the generator of KForge"},
    {"role": "user", "content": "write a kernel"},
]
CANARY = "canary-5f1d9c0e7b"
PRICE = Price(input=1e-6, output=2e-6, cached=1e-7)


class Absent:
    """An environment without what prefect brings along and litellm does not ask for."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name.split(".", maxsplit=1)[0] in ("fastapi", "tenacity"):
            raise ModuleNotFoundError(name)


@pytest.fixture(scope="module", autouse=True)
def slim() -> Iterator[None]:
    """A full environment hides two faults of litellm: every test here runs in a slim one."""
    finder: Any = Absent
    sys.meta_path.insert(0, finder)
    yield
    sys.meta_path.remove(finder)


@pytest.fixture
def canary() -> Iterator[str]:
    """A key in the environment for one test; the environment is the seam."""
    before = os.environ.get("OPENAI_API_KEY")
    os.environ["OPENAI_API_KEY"] = CANARY
    yield CANARY
    if before is None:
        del os.environ["OPENAI_API_KEY"]
    else:
        os.environ["OPENAI_API_KEY"] = before


def client(
    server: ScriptedServer, *, budget: Budget | None = None, price: Price | None = None
) -> LlmClient:
    return LlmClient(
        model="openai/local", api_base=server.url, deadline_s=20.0, budget=budget, price=price
    )


async def failing(*replies: Reply) -> tuple[ModelError, ScriptedServer]:
    with ScriptedServer(generator=list(replies)) as server:
        with pytest.raises(ModelError) as caught:
            await client(server).ask("generator", MESSAGES)
        return caught.value, server


def test_no_socket_on_import() -> None:
    """Importing the packages opens no socket and does not import litellm."""
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise SystemExit('socket at import')\n"
        "socket.getaddrinfo = socket.socket.connect = refuse\n"
        "import agents.llm, agents.generator, agents.analyst, agents.loop, data.records\n"
        "sys.exit('litellm was imported' if 'litellm' in sys.modules else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


async def test_one_request_and_a_full_record() -> None:
    """A call is one request; usage, price and texts are on record."""
    with ScriptedServer(generator=["answer"]) as server:
        call = await client(server, price=PRICE).ask("generator", MESSAGES)
        assert server.count == 1
    assert (call.role, call.model, call.reply) == ("generator", "openai/local", "answer")
    assert (call.prompt_tokens, call.cached_tokens) == (1200, 1000)
    assert (call.completion_tokens, call.reasoning_tokens) == (340, 40)
    assert json.loads(call.usage)["total_tokens"] == 1540
    assert json.loads(call.prompt) == MESSAGES
    assert call.cost_usd == pytest.approx(200e-6 + 1000e-7 + 680e-6)
    assert call.price == PRICE.vector()
    assert set(server.bodies[0]) == {"model", "messages", "max_tokens"}


@pytest.mark.parametrize("fault", [Fault.RATE_LIMITED, Fault.SERVER_ERROR])
async def test_a_busy_provider_may_be_asked_again(fault: Fault) -> None:
    """429 and 500 are retryable and cost one request: the loop is not in the adapter."""
    error, server = await failing(fault)
    assert error.retryable
    assert error.retry_after_s == (1.0 if fault is Fault.RATE_LIMITED else None)
    assert server.count == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.REFUSED_KEY, "OPENAI_API_KEY"),
        (Fault.NOT_FOUND, "--model"),
        (Fault.GARBAGE, "--api-base"),
        (Fault.WRONG_JSON, "--api-base"),
    ],
)
async def test_what_cannot_pass_is_not_retryable(fault: Fault, words: str) -> None:
    """One clear line that names what to check."""
    error, server = await failing(fault)
    assert not error.retryable
    assert words in str(error)
    assert "\n" not in str(error)
    assert server.count == 1


async def test_a_prompt_too_long_is_its_own_class() -> None:
    """The agent may ask again with less."""
    error, _ = await failing(Fault.CONTEXT)
    assert isinstance(error, ContextError)


@pytest.mark.parametrize("fault", [Fault.STALL, Fault.DRIP])
async def test_back_by_the_deadline(fault: Fault) -> None:
    """A silent and a dripping server end at our wall-clock deadline, not at a limit per read."""
    with ScriptedServer(generator=["warm up", fault]) as server:
        slow = LlmClient(model="openai/local", api_base=server.url, deadline_s=1.0)
        await client(server).ask("generator", MESSAGES)
        started = time.monotonic()
        with pytest.raises(ModelError, match="within") as caught:
            await slow.ask("generator", MESSAGES)
        assert 0.9 <= time.monotonic() - started <= 1.5
    assert caught.value.retryable


async def test_a_dead_endpoint_is_one_line() -> None:
    """The address and the cause are named."""
    base = closed_port()
    with pytest.raises(ModelError) as caught:
        await LlmClient(model="openai/local", api_base=base).ask("generator", MESSAGES)
    assert str(caught.value) == (
        f"no answer from {base}: connection refused; is the server running?"
    )
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (closed_port(), "connection refused; is the server running"),
        ("http://no-such-host.invalid/v1", "host name is not known"),
        ("127.0.0.1:80", "expected http://HOST:PORT/v1"),
        ("http://127.0.0.1:no/v1", "port is no number"),
    ],
    ids=["closed", "unknown", "no scheme", "no port"],
)
def test_a_wrong_base_is_said_before_anything_is_done(base: str, said: str) -> None:
    """No operator is probed and nothing is imported for an endpoint that is not there."""
    with pytest.raises(ModelError, match=said) as caught:
        ensure_reachable(base)
    assert not caught.value.retryable
    with ScriptedServer() as server:
        ensure_reachable(server.url)


async def test_an_endpoint_that_has_answered_may_come_back() -> None:
    """A server that is started anew in the middle of a campaign is waited for."""
    with ScriptedServer(generator=["answer"]) as server:
        asked = client(server)
        await asked.ask("generator", MESSAGES)
    with pytest.raises(ModelError, match=r"refused|broke|disconnected") as caught:
        await asked.ask("generator", MESSAGES)
    assert caught.value.retryable


async def test_an_answer_that_was_cut_is_asked_for_again() -> None:
    """Half a body is a fault of the world: never parsed, never a verdict."""
    error, server = await failing(Fault.CUT)
    assert error.retryable
    assert server.count == 1


async def test_a_prefix_is_marked_for_the_cache_where_it_must_be() -> None:
    """Anthropic caches the system message only when told to; what was cached is on record."""
    os.environ["ANTHROPIC_API_KEY"] = "not-a-key-of-anybody"
    try:
        with ScriptedServer(generator=["answer"]) as server:
            asked = LlmClient(
                model="anthropic/claude-sonnet-4-5", api_base=server.url.removesuffix("/v1")
            )
            call = await asked.ask("generator", MESSAGES)
    finally:
        del os.environ["ANTHROPIC_API_KEY"]
    assert server.bodies[0]["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert (call.reply, call.cached_tokens) == ("answer", 1000)


async def test_effort_goes_to_a_model_that_can_be_told_and_gets_room() -> None:
    """Reasoning is part of the answer's tokens on some providers: the code must still fit."""
    with ScriptedServer(generator=["answer"]) as server:
        thinking = LlmClient(model="openai/gpt-5", api_base=server.url, effort="low")
        plain = LlmClient(model="openai/gpt-4o-mini", api_base=server.url, effort="low")
        for asked in (thinking, plain):
            await asked.ask("generator", MESSAGES)
    first, second = server.bodies
    assert first["reasoning_effort"] == "low"
    assert first.get("max_tokens", first.get("max_completion_tokens")) == MAX_TOKENS + 1024
    assert "reasoning_effort" not in second


async def test_a_missing_key_and_an_unknown_model_cost_no_request() -> None:
    """Both are said before anything is sent."""
    assert "ANTHROPIC_API_KEY" not in os.environ
    with pytest.raises(ModelError, match="set ANTHROPIC_API_KEY in the environment"):
        await LlmClient(model="anthropic/claude-sonnet-4-5").ask("generator", MESSAGES)
    with pytest.raises(ModelError, match="unknown model 'nonsense'"):
        await LlmClient(model="nonsense").ask("generator", MESSAGES)


async def test_unknown_is_none() -> None:
    """No usage: no cost. A custom base has no list price, even for a known model's name."""
    with ScriptedServer(generator=[Fault.NO_USAGE, "answer"]) as server:
        priced = await client(server, price=PRICE).ask("generator", MESSAGES)
        assert (priced.cost_usd, priced.prompt_tokens, priced.usage) == (None, None, "{}")
        known = LlmClient(model="openai/gpt-4o-mini", api_base=server.url)
        assert (await known.ask("generator", MESSAGES)).cost_usd is None


async def test_a_base_from_the_environment_has_no_list_price(canary: str) -> None:
    """Litellm reads the variable by itself; the vendor's price says nothing about that server."""
    with ScriptedServer(generator=["answer"]) as server:
        os.environ["OPENAI_BASE_URL"] = server.url
        try:
            call = await LlmClient(model="openai/gpt-4o-mini").ask("generator", MESSAGES)
        finally:
            del os.environ["OPENAI_BASE_URL"]
        assert server.count == 1
    assert (call.cost_usd, call.price) == (None, {})


async def test_own_retries_are_all_there_is() -> None:
    """Two failures and an answer are three requests, and `retry-after` is waited for."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    script: list[Reply] = [Fault.RATE_LIMITED, Fault.SERVER_ERROR, "answer"]
    with ScriptedServer(generator=script) as server:
        asked = client(server)
        call = await patiently(
            lambda: asked.ask("generator", MESSAGES), pauses_s=(0.1, 0.1), sleep=sleep
        )
        assert server.count == 3
    assert call.reply == "answer"
    assert slept[0] >= 1.0


async def test_the_schema_goes_on_the_wire() -> None:
    """A response format is sent as it is, for a model that takes one."""
    with ScriptedServer(analyst=["{}"]) as server:
        messages = [{"role": "system", "content": "You are the analyst of KForge"}]
        await client(server).ask("analyst", messages, response_format=response_format())
        assert server.bodies[0]["response_format"] == response_format()


async def test_null_content_is_an_answer() -> None:
    """The parser classifies it; the adapter passes it on."""
    with ScriptedServer(generator=[Fault.NULL]) as server:
        call = await client(server).ask("generator", MESSAGES)
    assert (call.reply, call.finish_reason) == (None, "length")


async def test_a_repair_turn_has_more_room() -> None:
    """An answer that was cut off is asked for again with twice the tokens."""
    turn = [
        *MESSAGES,
        {"role": "assistant", "content": "half"},
        {"role": "user", "content": "again"},
    ]
    with ScriptedServer(generator=["answer"]) as server:
        asked = client(server)
        await asked.ask("generator", turn)
        assert server.bodies[0]["max_tokens"] == 2 * asked.max_tokens


async def test_no_more_is_asked_for_than_a_model_can_answer() -> None:
    """The table knows 4,096 tokens for this name; twice the usual room would be refused."""
    with ScriptedServer(generator=["answer"]) as server:
        asked = LlmClient(model="openai/gpt-4-turbo", api_base=server.url)
        await asked.ask("generator", MESSAGES)
        assert server.bodies[0]["max_tokens"] == 4096


async def test_the_budget_refuses_before_the_call() -> None:
    """Of six pairs in parallel with money for two calls, two reach the server."""
    run = Budget(calls=None, usd=0.04)
    with ScriptedServer(generator=["answer"]) as server:
        pairs = [
            client(server, budget=Budget(calls=9, usd=9.0, within=run), price=PRICE)
            for _ in range(6)
        ]
        done = await asyncio.gather(
            *(p.ask("generator", MESSAGES) for p in pairs), return_exceptions=True
        )
        assert server.count == 2
    assert sum(isinstance(d, BudgetError) for d in done) == 4
    assert run.spent.usd == pytest.approx(2 * 0.00098)


async def test_a_refused_call_gives_its_money_back() -> None:
    """A 500 is not billed."""
    budget = Budget(calls=None, usd=1.0)
    with ScriptedServer(generator=[Fault.SERVER_ERROR]) as server, pytest.raises(ModelError):
        await client(server, budget=budget, price=PRICE).ask("generator", MESSAGES)
    assert budget.spent.usd == 0.0


async def test_the_key_is_nowhere(
    canary: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not in the error, the record, the prompt sent, the log or the output."""
    leaky = [*MESSAGES, {"role": "user", "content": f"my key is {canary}"}]
    script: list[Reply] = [f"you said {canary}", Fault.REFUSED_KEY, Fault.SERVER_ERROR]
    with ScriptedServer(generator=script) as server:
        plain = client(server)
        query = LlmClient(model="openai/local", api_base=f"{server.url}?key={canary}")
        call = await plain.ask("generator", leaky)
        errors = []
        for asked in (plain, plain, query):
            with pytest.raises(ModelError) as caught:
                await asked.ask("generator", leaky)
            errors.append(caught.value)
        assert server.headers[0]["authorization"] == f"Bearer {canary}"
        sent = json.dumps(server.bodies)
    chain = "".join(f"{e!r}{e.__cause__!r}{e.__context__!r}" for e in errors)
    out, err = capfd.readouterr()
    for text in (sent, repr(call), chain, caplog.text, out, err):
        assert canary not in text


def test_shapes_of_keys_are_redacted() -> None:
    """Keys that are in no variable are known by their form."""
    text = "https://u:hunter22@host/v1?key=abc123 Bearer abcdefghij sk-abcdefgh12"
    assert redact(text, {}) == (
        "https://[redacted]@host/v1?key=[redacted] Bearer [redacted] [redacted]"
    )


def test_a_stolen_litellm_is_refused(tmp_path: Path) -> None:
    """The start-up file of the stolen uploads stops the adapter."""
    refuse_stolen([str(tmp_path)])
    (tmp_path / "litellm_init.pth").write_text("import os")
    with pytest.raises(ModelError, match="MAL-2026-2144"):
        refuse_stolen([str(tmp_path)])


def test_the_prompt_hash_names_the_request() -> None:
    """Model, room, messages and pictures count; a secret does not."""
    one = LlmClient(model="openai/a", api_base="http://h/v1")
    whole, part = Question(messages=MESSAGES), Question(messages=MESSAGES[:1])
    seen = Question(messages=MESSAGES, images=(Image(caption="c", png=b""),))
    assert one.prompt_hash(whole) == one.prompt_hash(Question(messages=list(MESSAGES)))
    assert len({one.prompt_hash(asked) for asked in (whole, part, seen)}) == 3
    assert one.prompt_hash(whole) != LlmClient(model="openai/b").prompt_hash(whole)
