"""The arguments of a node, as a lowering rule reads them."""

from collections.abc import Callable, Sequence
from typing import Any

from agents.offline.axes import UncoveredError
from agents.offline.lowering import Lowering, scalar
from agents.offline.program import Value
from data.records import Node


class Arguments:
    """Positional and named arguments of one node."""

    def __init__(self, state: Lowering, node: Node) -> None:
        self._state = state
        self._args = list(node.args)
        self._named = dict(node.kwargs)
        self.op = node.op

    def plain(self, place: int, name: str, default: Any = None) -> Any:
        """A number, flag, string or list; `default` where the call left it out."""
        value = self._args[place] if place < len(self._args) else self._named.get(name, default)
        if isinstance(value, dict) and "size" in value:
            return self._state.nodes[str(value["size"])].shape[int(str(value["dim"]))]
        return default if value is None else value

    def tensor(self, place: int, name: str = "") -> Value:
        """A node's value; a plain number becomes a constant."""
        value = self.plain(place, name)
        given = self._args[place] if place < len(self._args) else None
        if isinstance(given, dict) and "size" in given:
            return self._state.length(str(given["size"]), int(str(given["dim"])))
        if isinstance(value, dict):
            found = self._state.values[str(value["node"])]
            if isinstance(found, Value):
                return found
            raise UncoveredError(f"cannot use several results as one in {self.op}")
        return scalar(value)

    def flag(self, place: int, name: str) -> bool:
        """A switch that is off where the call left it out."""
        return bool(self.plain(place, name))

    def optional(self, place: int, name: str) -> Value | None:
        return None if self.plain(place, name) is None else self.tensor(place, name)

    def several(self, place: int) -> tuple[Value, ...]:
        """The results of a node that has several."""
        value = self.plain(place, "")
        found = self._state.values[str(value["node"])] if isinstance(value, dict) else None
        if not isinstance(found, tuple):
            raise UncoveredError(f"cannot take one of the results in {self.op}")
        return found

    def listed(self, place: int) -> tuple[Value, ...]:
        """The values of a list of nodes."""
        found = [self._state.values[str(v["node"])] for v in self.plain(place, "")]
        return tuple(v for v in found if isinstance(v, Value))

    def refuse(self, condition: object, what: str) -> None:
        """UncoveredError when `condition` holds."""
        if condition:
            raise UncoveredError(f"has no template for {self.op} with {what}")


Rule = Callable[[Lowering, Node, Arguments], Value | tuple[Value, ...]]


def rank(value: object) -> int:
    """The length of a list argument."""
    if isinstance(value, Sequence):
        return len(value)
    raise UncoveredError(f"cannot read the sizes {value!r}")


def ints(value: object) -> tuple[int, ...]:
    """A list of integers; UncoveredError for anything else."""
    if isinstance(value, Sequence) and all(isinstance(v, int) for v in value):
        return tuple(value)
    raise UncoveredError(f"cannot read the sizes {value!r}")
