"""What the Prefect server does by itself: mark silent runs, start crashed ones again, call."""

from datetime import timedelta
from uuid import UUID

from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState, SendNotification
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

SILENT_S = 540
"""Three heart-beats of 180 s; below that live runs were marked Crashed (PREFECT.md, section 6)."""
RUN = "prefect.resource.id"


def silent() -> AutomationCore:
    """A run whose process was killed with nobody watching would stay Running for ever."""
    return AutomationCore(
        name="kforge-silent",
        description=f"a run without a sign of life for {SILENT_S} s is Crashed",
        trigger=EventTrigger(
            match={RUN: "prefect.flow-run.*"},
            after={"prefect.flow-run.heartbeat"},
            expect={
                "prefect.flow-run.heartbeat",
                *(f"prefect.flow-run.{state}" for state in _ENDS),
            },
            for_each={RUN},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=SILENT_S),
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                name="Crashed",
                message=f"no sign of life for {SILENT_S} s",
                force=False,
            )
        ],
    )


_ENDS = ("Completed", "Failed", "Cancelled", "Crashed", "Paused", "Suspended")


def crashed(pool: str) -> AutomationCore:
    """A deployed run whose process died goes on: the ledger knows how far it was.

    Runs outside of the pool are left: no worker would take them up. Flows give up by themselves
    when they were started too often (`flows/port.py`).
    """
    return AutomationCore(
        name="kforge-crashed",
        description=f"a crashed run of the pool {pool} is started again",
        trigger=_ended(pool, "Crashed"),
        actions=[
            ChangeFlowRunState(
                state=StateType.SCHEDULED,
                name="AwaitingRetry",
                message="crashed; goes on from the ledger",
                force=True,
            )
        ],
    )


def alarm(pool: str, block: UUID) -> AutomationCore:
    """Somebody is told when a run has failed: a machine, a budget, a kernel that regressed."""
    return AutomationCore(
        name="kforge-alarm",
        description=f"a failed run of the pool {pool} is told to the block kforge-alarm",
        trigger=_ended(pool, "Failed"),
        actions=[
            SendNotification(
                block_document_id=block,
                subject="KForge: {{ flow_run.name }} is {{ flow_run.state.name }}",
                body="{{ flow_run.state.message }}",
            )
        ],
    )


def _ended(pool: str, state: str) -> EventTrigger:
    """Each run of the pool that ends so."""
    return EventTrigger(
        match={RUN: "prefect.flow-run.*"},
        match_related={"prefect.resource.role": "work-pool", "prefect.resource.name": pool},
        expect={f"prefect.flow-run.{state}"},
        for_each={RUN},
        posture=Posture.Reactive,
        threshold=1,
    )
