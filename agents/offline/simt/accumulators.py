"""What a thread adds up on its way along a row: one running value, or several side by side."""

from collections.abc import Sequence

from agents.offline.axes import UncoveredError
from agents.offline.expressions import START, STEP
from agents.offline.program import Value

FLUSH = 64
"""Values that one accumulator takes before its sum goes to the next level."""
NONE = "2147483647"


class Accumulators:
    """The running values of one pass; of `several`, each takes its share and all are joined.

    A chain of dependent additions is what a loop over a row waits for.
    """

    def __init__(self, names: dict[int, str], reductions: Sequence[Value], several: int) -> None:
        self._names, self._reductions, self.several = names, reductions, several
        self._sums = [v for v in reductions if v.text == "sum"]

    def declare(self, number: int) -> list[str]:
        """Of pass `number`."""
        out = []
        for v in self._reductions:
            name = self._names[id(v)]
            out += self._filled("V", name, START[v.text.removeprefix("arg")])
            if v.text.startswith("arg"):
                out += self._filled("I", f"w_{name}", NONE)
        if self._sums:
            out.append(f"int since{number} = 0;")
            out += [f"V d_{self._names[id(v)]} = 0.0f;" for v in self._sums]
        return out

    def step(self, v: Value, x: str, at: str) -> str:
        """Takes `x` in, which stands at `at` of the row; `u` is which one of several."""
        name = self._one(self._names[id(v)])
        if not v.text.startswith("arg"):
            return f"{name} = {STEP[v.text].format(name, x)};"
        where = self._one(f"w_{self._names[id(v)]}")
        wins = f"{first(v.text)}({x}, {at}, {name}, {where})"
        return f"if ({wins}) {{ {name} = {x}; {where} = {at}; }}"

    def flush(self, number: int) -> list[str]:
        """After some additions the sum moves up a level: its error stays that of few."""
        if not self._sums:
            return []
        moves = " ".join(self._moved(self._names[id(v)]) for v in self._sums)
        return [f"if (++since{number} == {FLUSH}) {{ since{number} = 0; {moves} }}"]

    def join(self) -> list[str]:
        """The thread's own result of each reduction, under its name."""
        out: list[str] = []
        for v in self._reductions:
            name = self._names[id(v)]
            if self.several > 1:
                out += self._joined(v, name)
            if v in self._sums:
                out.append(f"{name} += d_{name};")
        return out

    def _filled(self, kind: str, name: str, value: str) -> list[str]:
        if self.several == 1:
            return [f"{kind} {name} = {value};"]
        return [f"{kind} {name}_[{self.several}];", *self._each(f"{name}_[u] = {value};")]

    def _one(self, name: str) -> str:
        return name if self.several == 1 else f"{name}_[u]"

    def _each(self, line: str, begin: int = 0) -> list[str]:
        return ["#pragma unroll", f"for (int u = {begin}; u < {self.several}; ++u) {line}"]

    def _moved(self, name: str) -> str:
        move = f"d_{name} += {self._one(name)}; {self._one(name)} = 0.0f;"
        if self.several == 1:
            return move
        return f"for (int u = 0; u < {self.several}; ++u) {{ {move} }}"

    def _joined(self, v: Value, name: str) -> list[str]:
        where = f"w_{name}"
        if not v.text.startswith("arg"):
            step = STEP[v.text].format(name, f"{name}_[u]")
            return [f"V {name} = {name}_[0];", *self._each(f"{name} = {step};", 1)]
        wins = f"{first(v.text)}({name}_[u], {where}_[u], {name}, {where})"
        take = f"if ({wins}) {{ {name} = {name}_[u]; {where} = {where}_[u]; }}"
        return [f"V {name} = {name}_[0]; I {where} = {where}_[0];", *self._each(take, 1)]


def first(how: str) -> str:
    """The prelude's function that compares an extreme and its place with another."""
    return "first_max" if how == "argmax" else "first_min"


def combined(how: str, name: str) -> str:
    """The statement that takes another thread's value in."""
    return f"{name} = {STEP[how].format(name, f'o_{name}')};"


def position(reduced: Sequence[str], *, column: bool) -> str:
    """C of the place of an element along the one reduced axis."""
    if len(reduced) != 1:
        raise UncoveredError("has no template for an index over several axes")
    return f"(int)i_{reduced[0]}" if column else "(int)c"
