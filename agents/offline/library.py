"""The template families, tried in order."""

from collections.abc import Callable, Sequence
from functools import partial

from agents.offline.axes import UncoveredError, UnknownError
from agents.offline.direct import Direct
from agents.offline.fused import Fused
from agents.offline.matmul import Matmul
from agents.offline.simt.dialect import DIALECTS
from agents.offline.simt.fused import SimtFused
from agents.offline.simt.matmul import SimtMatmul
from agents.offline.template import Template
from data.records import Node

Family = Callable[[Sequence[Node]], Template]


def families(language: str) -> tuple[Family, ...]:
    """What can be rendered in this language; UncoveredError for one that nothing is in."""
    if language == "cpp":
        return (Fused, Matmul, Direct)
    dialect = DIALECTS.get(language)
    if dialect is None:
        raise UncoveredError(f"has no templates in {language}")
    return (partial(SimtFused, dialect=dialect), partial(SimtMatmul, dialect=dialect))


def find(graph: Sequence[Node], language: str = "cpp") -> Template:
    """The first family that covers the operator; UncoveredError with the reason of the nearest."""
    reasons: list[UncoveredError] = []
    for family in families(language):
        try:
            return family(graph)
        except UncoveredError as reason:
            reasons.append(reason)
        except (LookupError, TypeError, ValueError) as reason:
            # A call in a form that no rule expects, such as a tensor in place of a number.
            reasons.append(UncoveredError(f"cannot read the traced graph ({reason!r})"))
    raise next((r for r in reasons if not isinstance(r, UnknownError)), reasons[0])
