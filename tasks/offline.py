"""The two agents of a pair as the loop asks them, and those that need no model."""

from typing import Protocol

from agents.offline import OfflineGenerator, RuleAnalyst
from data.records import Counsel, Proposal, Request


class Agents(Protocol):
    """The generator and the analyst of a pair."""

    async def propose(self, request: Request) -> Proposal: ...

    async def advise(self, request: Request) -> Counsel: ...


class Offline:
    """No model: templates, schedule search and rules."""

    def __init__(self, seed: int) -> None:
        self._generator = OfflineGenerator(seed)
        self._analyst = RuleAnalyst()

    async def propose(self, request: Request) -> Proposal:
        return await self._generator.propose(request)

    async def advise(self, request: Request) -> Counsel:
        return await self._analyst.advise(request)
