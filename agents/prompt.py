"""Messages for the two agents, rebuilt from the request for every call.

The system message holds what stays the same for a pair, so that providers can cache it; the user
message holds the step. Nothing of the judge is ever in them: no source of it, no expected values,
no code that times.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from agents.evidence import attempts, best, failure, report, subject
from agents.excerpt import brief_number, cap, clean, estimate, fenced, head
from agents.llm import Message
from data.records import (
    OFFICIAL,
    SMALL,
    Bottleneck,
    Card,
    Contract,
    LibraryPolicy,
    LlmCall,
    Mode,
    Policy,
    Request,
    Shape,
    ShapePolicy,
    TensorSpec,
)
from data.techniques import TECHNIQUES

PROMPTS = Path(__file__).with_name("prompts")
METRICS = 25
"""More dilute the answer (LLM.md, section 6)."""
COMPACT = 1440
"""Estimated tokens of a compact prompt: Qwen's tokenizer counts 1 to 4 % more (10 prompts), so that
1,500 hold it; a small model on a core reads 33 a second (LLM.md, section 11)."""
ANSWER = 2000
"""Estimated tokens of its last answer that a repair turn shows; a compact one what room is left."""
REPAIR, NOTE = 120, 20
"""Left in a compact prompt for a repair turn, and in that for the words that something was cut."""
LATEST = 3
"""Attempts that the analyst sees."""
_PRECISION = {
    Policy.STRICT: "Contract: arithmetic at the precision of the declared dtypes; the error "
    "against float64 may be 64 times that of PyTorch's own result: accurate functions and plain "
    "sums pass, tf32 and half precision inside a float32 kernel do not.",
    Policy.TF32: "Contract: matrix products may round float32 inputs to tf32.",
    Policy.HALF: "Contract: 16-bit floating arithmetic is allowed; accumulate in float32.",
}
_LIBRARY = {
    LibraryPolicy.FLAGGED: "PyTorch operators may prepare (views, allocation); if they do the "
    "computing, the candidate is refused or flagged.",
    LibraryPolicy.REFUSED: "Any PyTorch operator that computes leads to refusal; views and "
    "allocation are free.",
    LibraryPolicy.ALLOWED: "Library calls may be used beside it.",
}
_SHAPES = {
    ShapePolicy.FIXED: "The kernel may be made for the listed shapes, and must be right at each.",
    ShapePolicy.FAMILY: "The kernel must be right for any shape of this kind, not only the listed.",
}
HINTS = (
    "Prefer the plain form: one pass, contiguous access, vectorised inner loop.",
    "Prefer locality: tile so that what is read again stays in cache or registers.",
    "Prefer parallelism: split the work evenly, several accumulators, little synchronisation.",
    "Prefer algebra: fewer passes over memory, recompute what is cheap, fuse what follows.",
)
"""One for each lineage in turn, so that first candidates differ."""


def generator_messages(request: Request, *, share: float = 1.0) -> list[Message]:
    """System and user message of the step; every section keeps `share` of its room."""
    if request.pair.settings.compact:
        return _fitting(lambda part: _generator(request, part, "generator_compact"))
    return _generator(request, share, "generator")


def _fitting(build: Callable[[float], list[Message]]) -> list[Message]:
    """Messages that leave of `COMPACT` tokens what a repair takes: sections shrink to fit."""
    for share in (1.0, 0.8, 0.6, 0.45, 0.3):
        messages = build(share)
        if tokens(messages) <= COMPACT - REPAIR:
            break
    return messages


def tokens(messages: Sequence[Message]) -> int:
    """About how many there are in all messages."""
    return sum(estimate(m["content"]) for m in messages)


def _generator(request: Request, share: float, name: str) -> list[Message]:
    move, settings = request.move, request.pair.settings
    parent, top = subject(request), best(request)
    shown = top and parent is not None and move.mode is Mode.OPTIMISE and top.iteration != parent
    user = _render(
        f"{name}_user",
        share,
        mode=str(move.mode),
        guardrails=settings.guardrails,
        operator=request.pair.operator,
        brief=request.pair.brief,
        hint=_hint(request),
        start=settings.start or "",
        includes=settings.include,
        advice=_advice(request),
        best=top,
        best_source=top.iteration.candidate.source
        if top and shown and top.iteration.candidate
        else "",
        parent=parent,
        failure=failure(parent) if parent and not parent.right else "",
        report=report(parent) if parent else "",
        attempts=attempts(request),
    )
    system = _render(f"{name}_system", share, **_standing(request))
    return [_message("system", system), _message("user", user)]


def analyst_messages(request: Request, schema: str, *, share: float = 1.0) -> list[Message]:
    """System and user message that ask for advice on the move's parent."""
    if request.pair.settings.compact:
        return _fitting(lambda part: _analyst(request, schema, part, "analyst_compact"))
    return _analyst(request, schema, share, "analyst")


def _analyst(request: Request, schema: str, share: float, name: str) -> list[Message]:
    profile = request.profile
    assert profile is not None
    told = {
        **_common(request),
        "schema": schema,
        "bottlenecks": [str(b) for b in Bottleneck],
        "tags": list(TECHNIQUES),
        "techniques": [f"{t.tag}: {t.meaning}" for t in TECHNIQUES.values()],
        "metrics": [
            f"{m.name} | {brief_number(m.value)} | {m.unit} | {m.source}"
            for m in profile.metrics[:METRICS]
        ],
        "remarks": [clean(r) for r in profile.remarks],
        "parent": request.parent,
        "attempts": attempts(request, LATEST),
    }
    return [
        _message("system", _render(f"{name}_system", share, **told)),
        _message("user", _render(f"{name}_user", share, **told)),
    ]


def repair(
    role: str, messages: Sequence[Message], call: LlmCall, *, why: str, compact: bool = False
) -> list[Message]:
    """The conversation with one more turn that says what was wrong with the answer's form."""
    asked = _render(f"{role}_repair", 1.0, why=why)
    left = COMPACT - NOTE - tokens(messages) - estimate(asked) if compact else ANSWER
    said = cap(call.reply or "(no answer)", left)
    return [*messages, _message("assistant", said), _message("user", asked)]


def _standing(request: Request) -> dict[str, Any]:
    """What the generator is told at every step of a pair."""
    contract = request.pair.contract
    return {
        **_common(request),
        "brief": request.pair.brief,
        "guardrails": request.pair.settings.guardrails,
        "lessons": [str(lesson) for lesson in request.pair.lessons],
        "reference": request.pair.reference,
        "device_line": _device(request).splitlines()[0],
        "library": _LIBRARY[contract.library],
        "shapes_rule": _SHAPES[contract.shapes],
        "timed": _timed(request),
        "tags": list(TECHNIQUES),
        "official": f" at `{OFFICIAL}`" if _sizes_differ(request) else "",
        "parameters": ", ".join(_tensor(p) for p in request.admission.parameters) or "none",
    }


def _common(request: Request) -> dict[str, Any]:
    """What both agents are told of operator and device."""
    operator, contract = request.pair.operator, request.pair.contract
    return {
        "operator": operator,
        "semantics": _semantics(operator.source),
        "precision": _precision(contract),
        "shapes": _shapes(request),
        "device": _device(request),
    }


def _precision(contract: Contract) -> str:
    return _PRECISION[contract.policy]


def _semantics(source: str) -> str:
    """First line of the module's docstring; empty when it has none."""
    head = source.lstrip()
    quote = next((q for q in ('"""', "'''") if head.startswith(q)), None)
    return head[3:].split(quote)[0].strip().splitlines()[0] if quote else ""


def _shapes(request: Request) -> str:
    lines = []
    for shape in request.admission.shapes:
        inputs = ", ".join(_tensor(t) for t in shape.inputs)
        outputs = ", ".join(_tensor(t) for t in shape.outputs)
        flops = f"{shape.flops:.0f} operations, " if shape.flops else ""
        lines.append(
            f"- shape `{shape.name}`: {inputs} -> {outputs}; {flops}"
            f"at least {shape.moved_bytes:.0f} bytes to and from memory{_times(request, shape)}"
        )
    return "\n".join(lines)


def _timed(request: Request) -> str:
    """Which shapes, with one left alone, and how they are weighed."""
    names = [shape.name for shape in request.admission.shapes]
    timed = [f"`{name}`" for name in names if name != SMALL or len(names) == 1]
    if len(timed) < 2:
        return f"Timed is shape {', '.join(timed)}." if timed else ""
    checked = f"; `{SMALL}` is only checked" if len(timed) < len(names) else ""
    first = f"`{OFFICIAL}`" if OFFICIAL in names else timed[-1]
    return (
        f"The search times shape {first}, the confirmation {', '.join(timed)}, "
        f"where the geometric mean is taken{checked}."
    )


def _sizes_differ(request: Request) -> bool:
    """Whether parameters are those of the official shape: constructor arguments may differ."""
    names = {shape.name for shape in request.admission.shapes}
    return bool(request.admission.parameters) and OFFICIAL in names and len(names) > 1


def _times(request: Request, shape: Shape) -> str:
    """The roofline floor and the time to beat, as far as they are known."""
    baseline = request.admission.baseline_us.get(shape.name)
    floor = f"; roofline floor {_rough(shape.floor_us)} us" if shape.floor_us else ""
    return f"{floor}; PyTorch takes {_rough(baseline)} us" if baseline else floor


def _tensor(spec: TensorSpec) -> str:
    return f"{spec.name} {spec.dtype}{list(spec.shape)}"


def _device(request: Request) -> str:
    """The card in words; figures that nobody knows are left out."""
    device, card = request.pair.device, request.admission.card
    lines = [f"{device.name}: {device.vendor}, {device.arch}"]
    lines += _card(card) if card else []
    known = sorted(request.admission.environment.items())
    facts = request.pair.brief.facts
    lines += [f"{n}: {clean(v)}" for n, v in known if v and (n in facts or not facts)]
    return cap("\n".join(lines), 500)


def _card(card: Card) -> list[str]:
    """Peaks to two digits: a second probe of the machine should not change the prompt."""
    rates = sorted(card.peak_tflop_s.items())
    peaks = [f"{_rough(card.peak_gb_s)} GB/s"]
    peaks += [f"{name} {_rough(rate)} TFLOP/s" for name, rate in rates]
    origin = "measured" if card.measured else "from the data sheet"
    parts = [f"{card.cores} cores", card.simd]
    parts += [f"last-level cache {brief_number(card.cache_mib)} MiB"] if card.cache_mib else []
    return [f"Peaks ({origin}): {', '.join(peaks)}", ", ".join(part for part in parts if part)]


def _rough(value: float) -> str:
    """Two digits, without an exponent.

    >>> _rough(4812.3), _rough(0.1234)
    ('4800', '0.12')
    """
    return f"{float(f'{value:.2g}'):g}"


def _hint(request: Request) -> str:
    """The move's own words, or those of its lineage (a, b, c, ... in turn)."""
    move = request.move
    if move.hint and move.hint != move.lineage:
        return move.hint
    return HINTS[(ord(move.lineage[-1:] or "a") - ord("a")) % len(HINTS)]


def _advice(request: Request) -> str:
    advice = request.advice
    if advice is None:
        return "Choose the change that saves most time."
    cited = ", ".join(f"{e.metric} = {brief_number(e.value)}" for e in advice.evidence)
    wanted = ", ".join(f"{k} = {v}" for k, v in sorted(advice.parameters.items()))
    lines = [f"{advice.change} (technique: {advice.technique}; bottleneck: {advice.bottleneck})"]
    lines += [f"Parameters: {wanted}"] if wanted else []
    return "\n".join([*lines, f"Evidence: {cited}"] if cited else lines)


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content.strip()}


def _render(name: str, share: float, /, **values: Any) -> str:
    return _environment(share).get_template(f"{name}.j2").render(**values)


@cache
def _environment(share: float) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PROMPTS),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - prompts are not HTML
        trim_blocks=True,
    )
    made.filters["cap"] = lambda text, tokens: cap(text, share * tokens)
    made.filters["head"] = lambda text, tokens: head(text, share * tokens)
    made.filters["fenced"] = fenced
    return made
