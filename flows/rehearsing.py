"""`kforge port --dry-run`: the exact prompts on stdout, nothing sent."""

import asyncio
import json
import sys
from dataclasses import asdict

from tasks.asked import Asked, compose
from tasks.campaign import Campaign
from tasks.machines import close_machines
from tasks.preview import Preview, preview


def show_prompts(asked: Asked, *, as_json: bool) -> int:
    """Prints the next request of each pair and what it could cost; the exit code."""
    campaign = compose(asked)
    asyncio.run(_all(campaign, as_json=as_json))
    crew = campaign.crew
    whole = f", all pairs at {crew.campaign_usd:.2f} USD" if crew.campaign_usd is not None else ""
    limits = f"a pair ends at {crew.calls} calls or {crew.usd:.2f} USD{whole}"
    print(f"{len(campaign.pairs())} pairs; {limits}; nothing was sent", file=sys.stderr)
    return 0


async def _all(campaign: Campaign, *, as_json: bool) -> None:
    try:
        for pair in campaign.pairs():
            found = await preview(campaign, pair)
            print(json.dumps(asdict(found)) if as_json else _page(found), flush=True)
    finally:
        close_machines()


def _page(found: Preview) -> str:
    """The request as a person reads it; messages stand as they are sent."""
    if found.why_none:
        return f"===== {found.pair}: {found.why_none}"
    title = f"===== {found.pair}, step {found.step}, {found.mode}: to the {found.role}"
    messages = [f"===== {m['role']}\n{m['content']}" for m in found.messages]
    price = (
        "no price is known" if found.worst_usd is None else f"{found.worst_usd:.4f} USD at worst"
    )
    size = f"about {found.prompt_tokens} tokens, at most {found.answer_tokens} back"
    pictures = [f"===== picture: {name}" for name in found.images]
    return "\n".join([title, *messages, *pictures, f"===== {size}; {price}"])
