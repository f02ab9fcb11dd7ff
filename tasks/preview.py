"""What a campaign would ask a model next: the exact messages and what they could cost."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agents.analyst import FORM, Show, nothing
from agents.analyst import ROLE as ANALYST
from agents.generator import ROLE as GENERATOR
from agents.images import tokens_for
from agents.llm import LlmClient, Message
from agents.prompt import analyst_messages, generator_messages, tokens
from agents.strategy import next_move, starts_from_kernel
from data.errors import MisuseError
from data.records import Iteration, Mode, Pair, Request
from data.store import Ledger
from tasks.campaign import Campaign
from tasks.generate import client_for, pictures
from tasks.machines import machine_for
from tasks.offline import Offline
from tasks.stages import profile, stages_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The next request of a pair, or why there is none."""

    pair: str
    step: int | None = None
    mode: str = ""
    role: str = ""
    messages: tuple[Message, ...] = ()
    prompt_tokens: int | None = None
    """Estimated from bytes; the provider's own count differs by some 20 %."""
    answer_tokens: int | None = None
    """Room of the answer."""
    images: tuple[str, ...] = ()
    """Pictures that go with it, counted in `prompt_tokens`."""
    worst_usd: float | None = None
    """If the whole prompt is new and the answer fills its room; None where no price is known."""
    why_none: str = ""


async def preview(campaign: Campaign, pair: Pair) -> Preview:
    """What would be asked now. The operator is probed as ever; nothing is sent or put on record."""
    if campaign.crew.kind != "llm":
        raise MisuseError("--dry-run shows prompts: it needs --agents llm and --model")
    history = Ledger(Path(campaign.runs)).history(pair.run_id, pair.operator.hash, pair.device.name)
    move = next_move(history, pair.settings)
    if move is None or move.mode is Mode.CONFIRM:
        return Preview(pair=pair.name, why_none="the search has ended; no model is asked")
    machine = machine_for(pair.device, Path(campaign.runs), scope=campaign.run_id)
    stages = stages_for(Offline(pair.settings.seed), machine, _forget)
    admission = await stages.admit(pair)
    if not admission.admitted:
        why = f"{admission.outcome}: {admission.reason}"
        return Preview(pair=pair.name, step=move.step, mode=move.mode, why_none=why)
    request = Request(pair=pair, admission=admission, move=move, history=history)
    client = client_for(campaign.crew, campaign.crew.models[0], None)
    return previewed(client, request, partial(pictures, campaign.crew))


async def _forget(iteration: Iteration) -> None:
    """Nothing is recorded."""
    del iteration


def previewed(client: LlmClient, request: Request, show: Show = nothing) -> Preview:
    """The messages of the request as the agents would send them, and their worst case."""
    move, start = request.move, request.pair.settings.start
    shown = Preview(pair=request.pair.name, step=move.step, mode=move.mode)
    if move.mode is Mode.TRANSLATE and start and starts_from_kernel(start):
        return replace(shown, why_none="the given kernel is judged first; no model is asked")
    request = _profiled(request)
    role, messages = _messages(request)
    images = client.seen(show(request)) if role == ANALYST else ()
    return replace(
        shown,
        role=role,
        messages=tuple(messages),
        prompt_tokens=tokens(messages) + tokens_for(client.model, images),
        answer_tokens=client.max_tokens,
        images=tuple(image.name for image in images),
        worst_usd=client.worst_usd(messages, images),
    )


def _messages(request: Request) -> tuple[str, list[Message]]:
    """An optimising step begins with the analyst; what the generator gets rests on its answer."""
    if request.profile is None:
        return GENERATOR, generator_messages(request)
    return ANALYST, analyst_messages(request, FORM)


def _profiled(request: Request) -> Request:
    """With what the analyst would read, when it is the analyst who is asked."""
    if request.move.mode is not Mode.OPTIMISE or request.parent is None:
        return request
    return replace(request, profile=profile(request.admission, request.parent))
