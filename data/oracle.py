"""How well an operator tells right from wrong: what the probes of its admission found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """Planted faults of one kind and how many of them the comparison sees."""

    kind: str
    planted: int
    seen: int

    def __str__(self) -> str:
        return f"{self.kind} {self.seen}/{self.planted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """The probes of one operator under one contract (JUDGE.md, section 2)."""

    strengths: tuple[Strength, ...] = ()
    sensitivity: float | None = None
    """rms(y(x1) - y(x2)) / rms(y); None where no output is a floating tensor."""
    parameter_sensitivity: float | None = None
    """The same for two draws of all parameters; None without parameters."""
    own_error: float | None = None
    """e0: norm error of the reference against float64, at least one rounding."""
    ignored: tuple[str, ...] = ()
    """Parameters without any effect."""
    redundant: tuple[str, ...] = ()
    """Parameters that the algebra takes away, such as a bias before a batch norm."""
    dead: tuple[str, ...] = ()
    """Branches that no probed input takes, or that all take."""
    hidden: tuple[str, ...] = ()
    """Branches that the official inputs do not show and larger ones do."""
    precision_scale: float | None = None
    """Least probed scale of zero-mean inputs at which lower precision is seen; None: undecided."""
    scales: tuple[float, ...] = ()
    """Of zero-mean inputs: at these the hidden branches show, so a judgement draws there too."""

    @property
    def share(self) -> float | None:
        """Of all planted faults that are seen."""
        planted = sum(s.planted for s in self.strengths)
        return sum(s.seen for s in self.strengths) / planted if planted else None
