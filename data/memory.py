"""What earlier verdicts say about the next search: earned by measurement, derived anew each time.

Nothing here is a model's prose: a lesson is a technique with its measured effect, a reference is a
kernel that was confirmed. What stops helping falls out by itself.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What adding one technique brought to operators of a family (`what_to_try_first`)."""

    technique: str
    expected_gain: float
    """Time before over after, shrunk towards 1 where there is little evidence."""
    operators_here: int
    helped_here: int
    hurt_here: int
    operators_elsewhere: int
    """On other devices; each once, whatever their number."""
    helped_elsewhere: int
    hurt_elsewhere: int

    def __str__(self) -> str:
        """One line for a prompt."""
        places = (
            (self.operators_here, self.helped_here, self.hurt_here, "on this device"),
            (self.operators_elsewhere, self.helped_elsewhere, self.hurt_elsewhere, "elsewhere"),
        )
        told = [
            f"{place}: helped {helped}, hurt {hurt} of {operators} operators"
            for operators, helped, hurt, place in places
            if operators
        ]
        return f"{self.technique}: {self.expected_gain:.2f}x expected; {'; '.join(told)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The best confirmed kernel of the operator on another device."""

    device: str
    candidate_id: str
    language: str
    source: str
    speedup: float
    parameters: dict[str, str] = field(default_factory=dict)
    """Its schedule, where a template wrote it."""
    techniques: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a campaign was told when it began; a resumed one is told the same."""

    lessons: dict[str, tuple[Lesson, ...]] = field(default_factory=dict)
    """By `device/family`."""
    references: dict[str, Reference] = field(default_factory=dict)
    """By hash of the operator."""
