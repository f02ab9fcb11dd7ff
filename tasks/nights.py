"""Which epoch a scheduled campaign belongs to: last night's if it was cut, else a new one."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tasks.asked import Asked, compose
from tasks.campaign import Campaign, campaign_file, ended, identify, store_campaign

GIVEN_UP = timedelta(days=7)
"""A night that was not finished after so long is left: a pair may fail for ever."""


def tonight(asked: Asked, today: date | None = None) -> Campaign:
    """The campaign that is meant, stored for its flow; epochs `date` and `night` become a day.

    `night` goes on with the latest earlier night of the same campaign that has not ended. One of
    another method or environment is another campaign: its numbers would not compare.
    """
    day = today or datetime.now(UTC).date()
    if asked.epoch not in ("date", "night"):
        campaign = compose(asked)
    else:
        campaign = compose(replace(asked, epoch=day.isoformat()))
        if asked.epoch == "night":
            campaign = _cut(campaign, day) or campaign
    store_campaign(campaign)
    return campaign


def _cut(campaign: Campaign, day: date) -> Campaign | None:
    """The latest night that did not end; None when the latest did or there is none."""
    nights = (day - timedelta(days=n) for n in range(1, GIVEN_UP.days + 1))
    for night in nights:
        earlier = identify(replace(campaign, epoch=night.isoformat()))
        stored = campaign_file(Path(campaign.runs), earlier.run_id)
        if stored.exists():
            return None if ended(earlier) else earlier
    return None
