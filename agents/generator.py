"""The generator: a language model that answers with one whole kernel file."""

from collections.abc import Sequence
from dataclasses import replace

from agents.author import author
from agents.llm import Ask, Message
from agents.prompt import generator_messages, repair
from agents.reply import Answer, ParseStatus, parse
from data.errors import BudgetError, ContextError
from data.records import Candidate, LlmCall, Mode, Proposal, Request, digest
from data.techniques import TECHNIQUES

ROLE = "generator"
LESS = 0.5
"""Room of each section when the first prompt was longer than the model takes."""
FINAL = (ParseStatus.OK, ParseStatus.REFUSED)
"""Asking for a better form changes neither."""
WHY = {
    ParseStatus.NULL: "it held no text",
    ParseStatus.EMPTY: "it was empty",
    ParseStatus.UNCLOSED_THOUGHT: "the reasoning did not end; think less and answer",
    ParseStatus.NO_CODE: "it held no fenced code block",
    ParseStatus.NO_MODEL: "no block defines class ModelNew",
    ParseStatus.AMBIGUOUS: "several different blocks define ModelNew; send the final one only",
    ParseStatus.TRUNCATED: "it was cut off before its end; leave out explanations",
    ParseStatus.ELIDED: "parts of the code were left out by a placeholder",
    ParseStatus.TOO_LARGE: "the file is above 64 kB",
    ParseStatus.INVALID_TEXT: "it held characters that are not text",
}


class LlmGenerator:
    """Writes kernels by asking a model; one repair turn at most for a fault of form."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def propose(self, request: Request) -> Proposal:
        """A candidate; without usable code its source is empty and `parse_status` says why.

        ModelError when the model cannot be reached, BudgetError before the first call.
        """
        messages, call = await self._first(request)
        answer = parse(call.reply, call.finish_reason)
        calls = [replace(call, parse_status=str(answer.status))]
        if answer.status not in FINAL:
            compact = request.pair.settings.compact
            asked = repair(ROLE, messages, call, why=WHY[answer.status], compact=compact)
            second = await self._again(asked)
            if second is not None:
                answer = parse(second.reply, second.finish_reason)
                calls.append(replace(second, parse_status=str(answer.status)))
        candidate = _candidate(request, answer, calls[-1])
        return Proposal(candidate=candidate, reason=_reason(answer), calls=tuple(calls))

    async def _first(self, request: Request) -> tuple[list[Message], LlmCall]:
        messages = generator_messages(request)
        try:
            return messages, await self._ask(ROLE, messages)
        except ContextError:
            messages = generator_messages(request, share=LESS)
            return messages, await self._ask(ROLE, messages)

    async def _again(self, asked: Sequence[Message]) -> LlmCall | None:
        """The second answer; None when the budget or the model's window has no room for it."""
        try:
            return await self._ask(ROLE, asked)
        except (BudgetError, ContextError):
            return None


def _candidate(request: Request, answer: Answer, call: LlmCall) -> Candidate:
    move, pair = request.move, request.pair
    start = pair.settings.start if move.mode is Mode.TRANSLATE else None
    shown = pair.reference.candidate_id if pair.reference else None
    writer = author(call.model)
    return Candidate(
        source=answer.source,
        language=pair.brief.language,
        agent_kind=writer.kind,
        agent_name=writer.name,
        model=call.model,
        parents=(move.parent,) if move.parent else (),
        reference=digest(pair.brief.language, start) if start else shown,
        techniques=tuple(t for t in dict.fromkeys(answer.techniques) if t in TECHNIQUES),
        note=answer.note,
        prompt_hash=call.prompt_hash,
        parse_status=str(answer.status),
    )


def _reason(answer: Answer) -> str:
    if answer.status is ParseStatus.OK:
        return ""
    why = WHY.get(answer.status, "the model refused")
    return f"no usable code in the model's answer ({answer.status}): {why}"
