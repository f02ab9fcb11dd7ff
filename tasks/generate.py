"""The two agents as the loop's stages: retried, paid once, on record before they are judged."""

from collections.abc import Callable, Sequence
from typing import Any

from agents.analyst import LlmAnalyst
from agents.budget import PAIR_CALLS, PAIR_USD, Budget
from agents.generator import LlmGenerator
from agents.llm import LlmClient, Message
from agents.offline import RuleAnalyst
from data.errors import BudgetError, MisuseError
from data.records import Counsel, LlmCall, Proposal, Request
from data.rows import call_key
from data.store import Ledger
from data.verdict import Outcome
from tasks.offline import Agents, Offline
from tasks.retry import patiently


class Modelled:
    """A language model in both roles; a reply on record is never paid again.

    A spent budget ends the search like a lack of ideas: what was found is still confirmed.
    """

    def __init__(self, client: LlmClient, budget: Budget, ledger: Ledger) -> None:
        self._client = client
        self._budget = budget
        self._ledger = ledger

    async def propose(self, request: Request) -> Proposal:
        try:
            return await LlmGenerator(self._ask(request)).propose(request)
        except BudgetError as error:
            return Proposal(candidate=None, outcome=Outcome.NOT_COVERED, reason=str(error))

    async def advise(self, request: Request) -> Counsel:
        try:
            return await LlmAnalyst(self._ask(request), stand_in=RuleAnalyst()).advise(request)
        except BudgetError as error:
            return Counsel(advice=None, reason=str(error))

    def _ask(self, request: Request) -> Callable[..., Any]:
        async def ask(
            role: str,
            messages: Sequence[Message],
            *,
            response_format: dict[str, Any] | None = None,
        ) -> LlmCall:
            key = call_key(request.pair, request.move, role)
            asked = self._client.prompt_hash(messages, response_format)
            for call in self._ledger.calls(key):
                if call.prompt_hash == asked:
                    self._budget.charge(call)
                    return call
            call = await patiently(
                lambda: self._client.ask(role, messages, response_format=response_format)
            )
            self._ledger.append_call(key, call)
            return call

        return ask


def agents_for(
    kind: str, seed: int, *, model: str | None, api_base: str | None, ledger: Ledger
) -> Agents:
    """The agents of one pair; MisuseError when `llm` is asked without a model."""
    if kind == "offline":
        return Offline(seed)
    if model is None:
        raise MisuseError("--agents llm needs --model, such as --model openai/gpt-5")
    budget = Budget(calls=PAIR_CALLS, usd=PAIR_USD)
    client = LlmClient(model=model, api_base=api_base, budget=budget)
    return Modelled(client, budget, ledger)
