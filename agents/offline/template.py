"""What a template family offers to the search: parameters, their domains, and moves with tags."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

Parameters = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What the first schedule is chosen by."""

    simd: str = ""
    cores: int = 1
    output_mib: float = 0.0
    """Of one call at the official shape."""
    lineage: str = "a"
    processor: bool = False
    """Whether the device is a processor, which turns a sub-group into one vector."""


class Template(Protocol):
    """One operator matched by a family."""

    @property
    def family(self) -> str: ...

    @property
    def domains(self) -> Mapping[str, tuple[str, ...]]:
        """Values of each parameter, simplest first."""

    @property
    def moves(self) -> Mapping[str, Parameters]:
        """By technique tag: the parameters that carry it out."""

    def first(self, hints: Hints) -> Parameters: ...

    def techniques(self, parameters: Parameters) -> tuple[str, ...]:
        """The tags that the schedule has."""

    def render(self, operator_source: str, parameters: Parameters) -> str:
        """The candidate's source."""


def neighbours(parameters: Parameters, domains: Mapping[str, tuple[str, ...]]) -> list[Parameters]:
    """All schedules that differ in one parameter.

    >>> neighbours({"unroll": "2"}, {"unroll": ("1", "2", "4")})
    [{'unroll': '1'}, {'unroll': '4'}]
    """
    return [
        {**parameters, name: value}
        for name, values in domains.items()
        for value in values
        if value != parameters[name]
    ]


def simpler(parameters: Parameters, domains: Mapping[str, tuple[str, ...]]) -> Iterator[Parameters]:
    """Ever simpler schedules: each parameter in turn falls to its first value and stays there."""
    for name, values in reversed(list(domains.items())):
        if parameters[name] != values[0]:
            parameters = {**parameters, name: values[0]}
            yield parameters
