"""The two agents as the loop's stages: retried, paid once, on record before they are judged."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from agents.analyst import ROLE as ANALYST
from agents.analyst import LlmAnalyst, Show, nothing
from agents.budget import Budget
from agents.endpoint import ensure_reachable
from agents.external import Command
from agents.generator import ROLE as GENERATOR
from agents.generator import LlmGenerator
from agents.images import Image
from agents.llm import Ask, LlmClient, Message, Question
from agents.offline import RuleAnalyst
from agents.plot import roofline
from data.errors import BudgetError, MisuseError, ModelError
from data.records import Counsel, LlmCall, Pair, Proposal, Request
from data.rows import CallKey, call_key
from data.store import Ledger
from data.verdict import Outcome
from tasks.crew import Crew
from tasks.offline import Agents, Offline
from tasks.replay import Script, kept_recording
from tasks.retry import PAUSES_S, patiently

BRIEFLY_S = PAUSES_S[:1]
"""Pauses before the next model of the list is asked instead."""


class Asked(Protocol):
    """A model or a command: it answers once, or raises ModelError."""

    @property
    def ask(self) -> Ask: ...


class Answer(Protocol):
    """Where the answer to the n-th question at a place comes from."""

    async def __call__(self, key: CallKey, sample: int, question: Question) -> LlmCall: ...


class Modelled:
    """Models, commands or a recording by role; a reply on record is never paid again.

    A role without one is left to the offline agents. A spent budget ends the search like a lack of
    ideas: what was found is still confirmed.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer],
        ledger: Ledger,
        offline: Offline,
        show: Show = nothing,
    ) -> None:
        self._answers = answers
        self._show = show
        self._ledger = ledger
        self._offline = offline
        self._paid: dict[CallKey, list[LlmCall]] | None = None
        """What is on record for the pair, read once: a folder of many small files."""

    async def propose(self, request: Request) -> Proposal:
        if GENERATOR not in self._answers:
            return await self._offline.propose(request)
        try:
            return await LlmGenerator(self._ask(request)).propose(request)
        except BudgetError as error:
            return Proposal(candidate=None, outcome=Outcome.NOT_COVERED, reason=str(error))

    async def advise(self, request: Request) -> Counsel:
        if ANALYST not in self._answers:
            return await self._offline.advise(request)
        try:
            asked = LlmAnalyst(self._ask(request), RuleAnalyst(), self._show)
            return await asked.advise(request)
        except BudgetError as error:
            return Counsel(advice=None, reason=str(error))

    def _ask(self, request: Request) -> Ask:
        """Asks, unless the reply to the n-th question of this step and role is on record.

        The history makes the question: only times that are measured anew may differ in it.
        """
        asked: Counter[str] = Counter()

        async def ask(
            role: str,
            messages: Sequence[Message],
            *,
            response_format: dict[str, Any] | None = None,
            images: Sequence[Image] = (),
        ) -> LlmCall:
            key = call_key(request.pair, request.move, role)
            known = self._known(request.pair).setdefault(key, [])
            asked[role] += 1
            if asked[role] <= len(known):
                return known[asked[role] - 1]
            question = Question(messages=messages, response_format=response_format, images=images)
            call = await self._answers[role](key, len(known), question)
            keep = partial(self._ledger.append_call, key, call, sample=len(known))
            await asyncio.to_thread(keep)
            known.append(call)
            return call

        return ask

    def _known(self, pair: Pair) -> dict[CallKey, list[LlmCall]]:
        if self._paid is None:
            self._paid = self._ledger.calls_of(pair.run_id, pair.operator.hash, pair.device.name)
        return self._paid


def asking(clients: Sequence[Asked]) -> Answer:
    """Answers of models, or of a command, asked in order."""

    async def answer(key: CallKey, sample: int, question: Question) -> LlmCall:
        del sample
        return await _first_that_answers(clients, partial(_put, key.role, question))

    return answer


async def _put(role: str, question: Question, client: Asked) -> LlmCall:
    return await client.ask(
        role,
        question.messages,
        response_format=question.response_format,
        images=question.images,
    )


async def _first_that_answers(
    clients: Sequence[Asked], ask: Callable[[Asked], Awaitable[LlmCall]]
) -> LlmCall:
    """The answer of the first model that gives one; the next is asked only after what may pass."""
    for client in clients[:-1]:
        try:
            return await _counted(client, ask, BRIEFLY_S)
        except ModelError as error:
            if not error.retryable:
                raise
    return await _counted(clients[-1], ask, PAUSES_S)


async def _counted(
    client: Asked,
    ask: Callable[[Asked], Awaitable[LlmCall]],
    pauses_s: tuple[float, ...],
) -> LlmCall:
    """The answer, with the number of requests that it took."""
    requests = 0

    async def attempt() -> LlmCall:
        nonlocal requests
        requests += 1
        return await ask(client)

    call = await patiently(attempt, pauses_s=pauses_s)
    return replace(call, attempts=requests)


def agents_for(crew: Crew, pair: Pair, ledger: Ledger) -> Agents:
    """The agents of one pair; MisuseError when `llm` is asked without a model.

    ModelError when a person's own endpoint is not there: no operator is probed for it.
    """
    offline = Offline(pair.settings.seed)
    if crew.keyless:
        return offline
    if crew.recording:
        recording = kept_recording(ledger.root, crew.recording)
        script = Script(recording, pair)
        return Modelled(dict.fromkeys(recording.roles, script.answer), ledger, offline)
    if crew.kind == "llm" and not crew.models:
        raise MisuseError("--agents llm needs --model, such as --model openai/gpt-5")
    if crew.api_base:
        ensure_reachable(crew.api_base)
    budget = pair_budget(crew, pair, ledger)
    askable: dict[str, Sequence[Asked]] = {
        role: [client_for(crew, model, budget) for model in crew.models]
        for role in (GENERATOR, ANALYST)
    }
    for role, line in crew.commands.items():
        askable[role] = [Command(line=line, deadline_s=crew.command_deadline_s, budget=budget)]
    answers = {role: asking(clients) for role, clients in askable.items() if clients}
    return Modelled(answers, ledger, offline, partial(pictures, crew))


def pictures(crew: Crew, request: Request) -> tuple[Image, ...]:
    """What the analyst is shown: the plot that is drawn, then what the person gave."""
    drawn = roofline(request) if crew.roofline else None
    return (*([drawn] if drawn else []), *crew.given())


def client_for(crew: Crew, model: str, budget: Budget | None) -> LlmClient:
    """One of the crew's models."""
    return LlmClient(
        model=model,
        api_base=crew.api_base,
        effort=crew.effort,
        max_tokens=crew.max_tokens,
        deadline_s=crew.deadline_s,
        price=crew.price,
        budget=budget,
        vision=crew.vision,
    )


def pair_budget(crew: Crew, pair: Pair, ledger: Ledger) -> Budget:
    """What is left for a pair within its campaign: calls on record have been spent."""
    whole = _campaign_budget(pair.run_id, crew.campaign_usd, ledger.root)
    budget = Budget(calls=crew.calls, usd=crew.usd, within=whole)
    for cost_usd in ledger.costs(pair.run_id, pair.operator.hash, pair.device.name):
        budget.charge(cost_usd)
    return budget


@cache
def _campaign_budget(run_id: str, usd: float | None, runs: Path) -> Budget:
    """One for all pairs of a run in this process."""
    budget = Budget(calls=None, usd=usd)
    if usd is not None:
        for cost_usd in Ledger(runs).costs_of_run(run_id):
            budget.charge(cost_usd)
    return budget
