"""What a campaign is told of earlier ones: looked up once, kept with it."""

from dataclasses import replace
from pathlib import Path

from data import recall
from data.memory import Memory
from tasks.campaign import Campaign, campaign_file, read_campaign


def remembered(campaign: Campaign) -> Campaign:
    """The campaign with lessons and references; one that was started before keeps its own."""
    if campaign.crew.keyless and not campaign.settings.reference:
        return campaign
    runs = Path(campaign.runs)
    known = campaign_file(runs, campaign.run_id)
    if known.exists():
        return replace(campaign, memory=read_campaign(known).memory)
    if not (runs / "iterations").is_dir():
        return campaign
    return replace(campaign, memory=_memory(campaign, runs))


def _memory(campaign: Campaign, runs: Path) -> Memory:
    contract, source = campaign.contract, campaign.settings.reference
    # Rules have no prompt for lessons to stand in.
    keyless = campaign.crew.keyless
    return Memory(
        lessons={} if keyless else recall.lessons(runs, campaign.devices, contract),
        references=recall.references(runs, source, contract, campaign.operators) if source else {},
    )
