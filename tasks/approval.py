"""A person's word before money is spent or kernels leave: the run waits, Resume asks for it."""

import asyncio

from prefect.flow_runs import apause_flow_run
from prefect.input import RunInput
from pydantic import Field

from tasks.campaign import Campaign

WAIT_S = 24 * 3600
LATER_S = 3600
"""A pause that the server itself ended would be Failed, whatever its flow says."""
POLL_S = 5


class Approval(RunInput):
    """The form of Resume."""

    approved: bool = Field(default=False, description="Whether it may be done.")


async def refusal(campaign: Campaign, above_usd: float | None) -> str | None:
    """Why the campaign must not start; None when it may.

    One that may cost more than `above_usd` (None: any sum is allowed) waits for somebody.
    """
    worst = campaign.worst_usd
    if above_usd is None or worst <= above_usd:
        return None
    return await refused(
        f"The campaign may cost {worst:.2f} USD, more than the {above_usd:.2f} that need no one."
    )


async def refused(text: str) -> str | None:
    """Why what `text` says must not be done; None when somebody said that it may.

    The run is Paused until somebody resumes it; a day without an answer is a no.
    """
    try:
        async with asyncio.timeout(WAIT_S):
            said = await apause_flow_run(
                wait_for_input=Approval.with_initial_data(description=text),
                timeout=WAIT_S + LATER_S,
                poll_interval=POLL_S,
            )
    except TimeoutError:
        return f"{text} Nobody answered within a day."
    return None if said is not None and said.approved else f"{text} It was not approved."
