"""How accepted kernels stand after they were looked at again."""

from dataclasses import dataclass

from data.records import Iteration
from tasks import pages

Row = dict[str, str | None]

LEAST_LOSS = 0.05
"""A smaller loss than this is no alarm, however narrow the intervals are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A kernel before and after it was looked at again."""

    before: Iteration
    after: Iteration

    @property
    def alarm(self) -> str:
        """What was lost, in one sentence; empty when the kernel holds."""
        if not self.after.right:
            return f"{self.after.verdict.value} now: {self.after.reason}"
        return _loss(self.before, self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An operator on a device under a contract, with all looks that it took to find its leader."""

    name: str
    contract: str
    looks: tuple[Look, ...] = ()
    leader: Iteration | None = None
    """The best kernel afterwards; None when none is right any more."""
    fault: str = ""
    """Why it could not be looked at: the machine's fault, not the kernel's."""

    @property
    def alarms(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: {look.alarm}" for look in self.looks if look.alarm)

    @property
    def rolled_back(self) -> bool:
        """Whether another kernel leads now than before."""
        first = self.looks[0].before.candidate_id if self.looks else None
        return first is not None and (self.leader is None or self.leader.candidate_id != first)


def _loss(before: Iteration, after: Iteration) -> str:
    """The speed that was lost beyond both intervals; empty when none was."""
    if before.speedup is None or before.speedup_low is None:
        return ""
    if after.speedup is None or after.speedup_high is None:
        return f"not timed now, was {before.speedup:.2f}x"
    apart = after.speedup_high < before.speedup_low
    if not apart or after.speedup > (1 - LEAST_LOSS) * before.speedup:
        return ""
    now = f"{after.speedup:.2f}x over {after.baseline} now"
    return f"{now}, was {before.speedup:.2f}x{_why(before, after)}"


def _why(before: Iteration, after: Iteration) -> str:
    """Which of the two times moved, by the shape that both have first; for orientation."""
    earlier = {t.shape: t for t in before.run.timings} if before.run else {}
    for now in after.run.timings if after.run else ():
        if was := earlier.get(now.shape):
            kernel = f"{was.candidate_us:.1f} to {now.candidate_us:.1f} us"
            return f" (kernel {kernel}, baseline {was.baseline_us:.1f} to {now.baseline_us:.1f} us)"
    return ""


def rows(places: tuple[Place, ...]) -> list[Row]:
    """One row a look, one for a place where none was due or none was possible."""
    return [row for place in places for row in _rows(place)]


def _rows(place: Place) -> list[Row]:
    shared: Row = {"pair": place.name, "contract": place.contract}
    looks: list[Row] = [
        shared
        | {
            "candidate": look.before.candidate_id,
            "before": f"{look.before.verdict.value} {pages.speed(look.before)}",
            "now": f"{look.after.verdict.value} {pages.speed(look.after)}",
            "alarm": look.alarm,
            "leader": "",
        }
        for look in place.looks
    ]
    leader = place.leader
    led = f"{leader.candidate_id} {pages.speed(leader)}" if leader else "none is right any more"
    if place.rolled_back:
        looks[-1]["leader"] = led
    if place.fault or not looks:
        said = f"not looked at: {place.fault}" if place.fault else "environment unchanged"
        looks.append(
            shared | {"candidate": None, "before": led, "now": said, "alarm": "", "leader": ""}
        )
    return looks
