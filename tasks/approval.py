"""A person's word before money is spent: the run waits, and the UI's Resume asks for it."""

from prefect.exceptions import FlowPauseTimeout
from prefect.flow_runs import apause_flow_run
from prefect.input import RunInput
from pydantic import Field

from tasks.campaign import Campaign

WAIT_S = 24 * 3600
POLL_S = 5


class Approval(RunInput):
    """The form of Resume."""

    approved: bool = Field(default=False, description="Whether the campaign may start.")


async def refusal(campaign: Campaign, above_usd: float | None) -> str | None:
    """Why the campaign must not start; None when it may.

    A campaign that may cost more than `above_usd` (None: any sum is allowed) is Paused until
    somebody resumes its run; after a day without an answer it does not start.
    """
    worst = campaign.worst_usd
    if above_usd is None or worst <= above_usd:
        return None
    text = f"The campaign may cost {worst:.2f} USD, more than the {above_usd:.2f} that need no one."
    try:
        said = await apause_flow_run(
            wait_for_input=Approval.with_initial_data(description=text),
            timeout=WAIT_S,
            poll_interval=POLL_S,
        )
    except FlowPauseTimeout:
        return f"{text} Nobody answered within a day."
    return None if said is not None and said.approved else f"{text} It was not approved."
