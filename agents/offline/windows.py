"""Lowering rules of pooling and resampling: reductions along the taps of a window."""

from collections.abc import Sequence
from functools import reduce

from agents.offline.lookups import elsewhere, sizes
from agents.offline.lowering import Lowering, as_float, scalar
from agents.offline.program import Value, count
from agents.offline.reading import chosen, iota, length, mapped, whole, within
from agents.offline.rule import Arguments, Rule
from agents.offline.window import Window
from data.records import Node


class Taps:
    """A value seen through windows: one new axis for the outputs, one for the taps, of each."""

    def __init__(self, state: Lowering, x: Value, windows: Sequence[Window], node: Node) -> None:
        self.state, self.x = state, x
        first = len(x.dims) - len(windows)
        places = range(first, len(x.dims))
        self.outputs = list(x.dims)
        self.over: list[tuple[int, ...]] = []
        self.inside: list[Value] = []
        value = as_float(x)
        for place, window in zip(places, windows, strict=True):
            dim, made = x.dims[place], node.shape[place - len(x.dims)]
            size = window.size(state.axes.size(dim), str(window.taps))
            out = () if made == 1 else (state.axes.new(made, size),)
            tap = () if window.taps == 1 else (state.axes.new(window.taps, str(window.taps)),)
            text = f"({{0}} * {window.stride} + {{1}} * {window.dilation} - {window.padding})"
            index = mapped(text, *(iota(d) if d else whole(0) for d in (out, tap)))
            self.inside.append(within(index, length(dim)))
            value = elsewhere(state, value, place, index)
            self.outputs[place] = out
            self.over.append(tap)
        self.value = mapped("{0}", value, kind="f", dims=(*self.outputs, *self.over))

    @property
    def valid(self) -> Value:
        """Whether a tap lies inside the tensor."""
        return reduce(lambda a, b: mapped("({0} & {1})", a, b, kind="b"), self.inside)

    def reduced(self, how: str, value: Value) -> Value:
        """The reduction along all taps."""
        if not any(self.over):
            return mapped("{0}", value, kind="f", dims=tuple(self.outputs))
        dims = tuple(range(len(self.outputs), len(self.outputs) + len(self.over)))
        return self.state.reduce(how, value, dims)

    def filled(self, fill: str) -> Value:
        """The value with `fill` outside the tensor."""
        return chosen(self.valid, self.value, scalar(float(fill)))


def _windows(a: Arguments, rank: int, places: tuple[int, int, int, int]) -> list[Window]:
    """From kernel size, stride, padding and dilation at these places of the call."""
    taps = sizes(a.plain(places[0], "kernel_size"), rank)
    stride = a.plain(places[1], "stride") or taps
    padding = sizes(a.plain(places[2], "padding", 0), rank)
    dilation = sizes(a.plain(places[3], "dilation", 1), rank)
    rows = zip(taps, sizes(stride, rank), padding, dilation, strict=True)
    return [Window(taps=t, stride=s, padding=p, dilation=d) for t, s, p, d in rows]


def _max_pool(rank: int) -> Rule:
    def rule(state: Lowering, node: Node, a: Arguments) -> Value:
        a.refuse(a.flag(5, "ceil_mode"), "ceil_mode")
        taps = Taps(state, a.tensor(0), _windows(a, rank, (1, 2, 3, 4)), node)
        return taps.reduced("max", taps.filled("-inf"))

    return rule


def _avg_pool(rank: int) -> Rule:
    def rule(state: Lowering, node: Node, a: Arguments) -> Value:
        a.refuse(a.flag(4, "ceil_mode"), "ceil_mode")
        windows = _windows(a, rank, (1, 2, 3, 99))
        taps = Taps(state, a.tensor(0), windows, node)
        total = taps.reduced("sum", taps.filled("0"))
        divisor = a.plain(6, "divisor_override")
        if divisor is not None:
            return state.div(total, scalar(float(divisor)))
        if a.plain(5, "count_include_pad", 1) or not any(w.padding for w in windows):
            number = 1
            for window in windows:
                number *= window.taps
            return state.div(total, scalar(float(number)))
        return state.div(total, taps.reduced("sum", _ones(taps)))

    return rule


def _ones(taps: Taps) -> Value:
    """1 where a tap lies inside."""
    return mapped("({0} ? splat(1.0f) : splat(0.0f))", taps.valid, kind="f", dims=taps.value.dims)


def _adaptive(rank: int) -> Rule:
    """To sizes that divide the input's: windows side by side."""

    def rule(state: Lowering, node: Node, a: Arguments) -> Value:
        x = a.tensor(0)
        places = range(len(x.dims) - rank, len(x.dims))
        extents = [state.axes.extent(x.dims[p]) for p in places]
        goals = node.shape[-rank:]
        if all(goal == 1 for goal in goals):
            return state.mean(x, tuple(places), keep=True)
        a.refuse(any(n % m for n, m in zip(extents, goals, strict=True)), "windows that differ")
        taps = [n // m for n, m in zip(extents, goals, strict=True)]
        seen = Taps(state, x, [Window(taps=t, stride=t) for t in taps], node)
        total = seen.reduced("sum", seen.value)
        return state.div(total, count(tuple(axis for dim in seen.over for axis in dim)))

    return rule


WINDOWS: dict[str, Rule] = {
    **{f"max_pool{n}d": _max_pool(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _avg_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive(n) for n in (1, 2, 3)},
}
