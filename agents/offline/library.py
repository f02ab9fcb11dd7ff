"""The template families, tried in order."""

from collections.abc import Callable, Sequence

from agents.offline.axes import UncoveredError
from agents.offline.fused import Fused
from agents.offline.matmul import Matmul
from agents.offline.template import Template
from data.records import Node

FAMILIES: tuple[Callable[[Sequence[Node]], Template], ...] = (Fused, Matmul)


def find(graph: Sequence[Node]) -> Template:
    """The first family that covers the operator; UncoveredError with the first one's reason."""
    reasons: list[UncoveredError] = []
    for family in FAMILIES:
        try:
            return family(graph)
        except UncoveredError as reason:
            reasons.append(reason)
        except (LookupError, TypeError, ValueError) as reason:
            # A call in a form that no rule expects, such as a tensor in place of a number.
            reasons.append(UncoveredError(f"cannot read the traced graph ({reason!r})"))
    raise reasons[0]
