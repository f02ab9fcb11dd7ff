"""The analyst: a language model that reads a profile and names one change, checked against it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import pydantic

from agents.author import author
from agents.excerpt import brief_number
from agents.images import Image
from agents.llm import Ask, Message
from agents.prompt import METRICS, analyst_messages, repair
from agents.reply import ParseStatus, json_object
from agents.roofline import contradiction
from data.errors import BudgetError, ContextError
from data.records import Advice, Bottleneck, Counsel, Evidence, LlmCall, Profile, Request
from data.techniques import TECHNIQUES

ROLE = "analyst"
LESS = 0.5
"""Room of each section when the first prompt was longer than the model takes."""
CLOSE = 0.01
"""Relative: a cited value may be rounded, not invented."""
LONGEST = 600
"""Characters of `change`: one change, not a plan."""


class Advisor(Protocol):
    """Who is asked when the model's advice is of no use."""

    async def advise(self, request: Request) -> Counsel: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameter:
    name: str
    value: str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cited:
    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opinion:
    """The model's answer as it is on the wire."""

    bottleneck: Bottleneck
    evidence: list[_Cited]
    change: str
    technique: str
    parameters: list[_Parameter] | dict[str, str | int | float | bool] = field(default_factory=list)
    expected_gain: float | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """An answer that can be followed, or what is wrong with it."""

    status: ParseStatus
    opinion: _Opinion | None = None
    fault: str = ""


Show = Callable[[Request], Sequence[Image]]
"""What pictures go with a question, for models that can see."""


def nothing(_: Request) -> Sequence[Image]:
    """No pictures."""
    return ()


class LlmAnalyst:
    """Advice of a model; the stand-in's where the model's cannot be used, and the row says why."""

    def __init__(self, ask: Ask, stand_in: Advisor, show: Show = nothing) -> None:
        self._ask = ask
        self._stand_in = stand_in
        self._show = show

    async def advise(self, request: Request) -> Counsel:
        """One advice, or None when nothing is worth trying; one repair turn at most.

        ModelError when the model cannot be reached, BudgetError before the first call.
        """
        if request.profile is None or request.parent is None:
            return await self._stand_in.advise(request)
        images = self._show(request)
        messages, call = await self._first(request, images)
        reading = read(call, request.profile)
        calls = [replace(call, parse_status=str(reading.status))]
        if reading.opinion is None and reading.status is not ParseStatus.REFUSED:
            compact = request.pair.settings.compact
            asked = repair(ROLE, messages, call, why=reading.fault, compact=compact)
            second = await self._again(asked, images)
            if second is not None:
                reading = read(second, request.profile)
                calls.append(replace(second, parse_status=str(reading.status)))
        if reading.opinion is None:
            return await self._replaced(request, reading, calls)
        return _counsel(reading.opinion, calls)

    async def _first(
        self, request: Request, images: Sequence[Image]
    ) -> tuple[list[Message], LlmCall]:
        share = 1.0
        while True:
            messages = analyst_messages(request, FORM, share=share)
            try:
                return messages, await self._asked(messages, images)
            except ContextError:
                if share == LESS:
                    raise
                share = LESS

    async def _asked(self, messages: Sequence[Message], images: Sequence[Image]) -> LlmCall:
        form = response_format()
        return await self._ask(ROLE, messages, response_format=form, images=images)

    async def _again(self, asked: Sequence[Message], images: Sequence[Image]) -> LlmCall | None:
        """The second answer; None when the budget or the model's window has no room for it."""
        try:
            return await self._asked(asked, images)
        except (BudgetError, ContextError):
            return None

    async def _replaced(
        self, request: Request, reading: _Reading, calls: Sequence[LlmCall]
    ) -> Counsel:
        why = f"{calls[-1].model}: {reading.fault}"
        counsel = await self._stand_in.advise(request)
        advice = replace(counsel.advice, replaced=why) if counsel.advice else None
        reason = f"{counsel.reason} (instead of the model's advice: {why})".strip()
        return replace(counsel, advice=advice, reason=reason, calls=(*calls, *counsel.calls))


def _counsel(opinion: _Opinion, calls: Sequence[LlmCall]) -> Counsel:
    if opinion.bottleneck is Bottleneck.NONE:
        return Counsel(advice=None, reason=opinion.change, calls=tuple(calls))
    adviser = author(calls[-1].model)
    advice = Advice(
        bottleneck=opinion.bottleneck,
        evidence=tuple(Evidence(metric=e.metric, value=e.value) for e in opinion.evidence),
        change=opinion.change.strip(),
        technique=opinion.technique,
        parameters=_parameters(opinion),
        expected_gain=opinion.expected_gain,
        confidence=opinion.confidence,
        agent_kind=adviser.kind,
        agent_name=adviser.name,
        model=calls[-1].model,
    )
    return Counsel(advice=advice, calls=tuple(calls))


def _parameters(opinion: _Opinion) -> dict[str, str]:
    given = opinion.parameters
    if isinstance(given, dict):
        return {name: str(value) for name, value in given.items()}
    return {p.name: str(p.value) for p in given}


def read(call: LlmCall, profile: Profile) -> _Reading:
    """The answer, if it is the object that was asked for and agrees with the metrics."""
    text = json_object(call.reply, call.finish_reason)
    if isinstance(text, ParseStatus):
        return _Reading(status=text, fault=f"no JSON object in the answer ({text})")
    try:
        opinion = _opinions().validate_json(text)
    except pydantic.ValidationError as error:
        return _Reading(status=ParseStatus.BAD_JSON, fault=_first_fault(error))
    fault = objection(opinion, profile)
    if fault is not None:
        return _Reading(status=ParseStatus.CONTRADICTED, fault=fault)
    return _Reading(status=ParseStatus.OK, opinion=opinion)


@cache
def _opinions() -> pydantic.TypeAdapter[_Opinion]:
    return pydantic.TypeAdapter(_Opinion)


def _first_fault(error: pydantic.ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the answer"
    return f"{where}: {first['msg']}"


def objection(opinion: _Opinion, profile: Profile) -> str | None:
    """Why the advice cannot be followed; None when it can."""
    if opinion.bottleneck is not Bottleneck.NONE and opinion.technique not in TECHNIQUES:
        return f"technique {opinion.technique!r} is not in the list"
    if not opinion.change.strip() or len(opinion.change) > LONGEST:
        return f"change has {len(opinion.change)} characters; expected 1 to {LONGEST}"
    return (
        _misquoted(opinion, profile)
        or _out_of_range(opinion)
        or contradiction(opinion.bottleneck, profile)
    )


def _misquoted(opinion: _Opinion, profile: Profile) -> str | None:
    if not opinion.evidence:
        return "no metric is cited"
    for cited in opinion.evidence:
        known = {m.name: m.value for m in profile.metrics[:METRICS]}.get(cited.metric)
        if known is None:
            return f"{cited.metric!r} is not among the metrics"
        if not math.isclose(cited.value, known, rel_tol=CLOSE):
            return f"{cited.metric} is {brief_number(known)}, not {brief_number(cited.value)}"
    return None


def _out_of_range(opinion: _Opinion) -> str | None:
    gain, confidence = opinion.expected_gain, opinion.confidence
    if gain is not None and not (math.isfinite(gain) and gain > 0):
        return f"expected_gain {gain} is no ratio of times"
    if confidence is not None and not 0 <= confidence <= 1:
        return f"confidence {confidence} is not between 0 and 1"
    return None


FORM = """{"bottleneck": "memory", "evidence": [{"metric": "NAME", "value": 0.0}],
 "change": "...", "technique": "TAG", "parameters": [{"name": "NAME", "value": "VALUE"}],
 "expected_gain": 1.3, "confidence": 0.6}"""


@cache
def response_format() -> dict[str, Any]:
    """The same as a strict schema: flat, without references and lengths, which providers refuse."""
    text, number = {"type": "string"}, {"type": "number"}
    fields: dict[str, Any] = {
        "bottleneck": {"type": "string", "enum": [str(b) for b in Bottleneck]},
        "evidence": _list_of({"metric": text, "value": number}),
        "change": text,
        "technique": {"type": "string", "enum": list(TECHNIQUES)},
        "parameters": _list_of({"name": text, "value": text}),
        "expected_gain": number,
        "confidence": number,
    }
    return {
        "type": "json_schema",
        "json_schema": {"name": "advice", "strict": True, "schema": _object(fields)},
    }


def _list_of(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _object(fields)}


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
