"""Convolutions as sums along channels and taps: the form in which threads do without tiles."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.offline.axes import Dim, UncoveredError
from agents.offline.convolution import CONVOLUTIONS, windows_of
from agents.offline.lookups import elsewhere
from agents.offline.lowering import Lowering, as_float, scalar
from agents.offline.program import Value
from agents.offline.reading import chosen, iota, length, mapped, whole, within
from agents.offline.reshapes import renamed
from agents.offline.rule import Arguments, Rule
from agents.offline.window import Window
from data.records import Node


def _convolution(state: Lowering, node: Node, a: Arguments) -> Value:
    """Every output as one sum, over what the windows read and 0 where they read nothing."""
    x, weight = as_float(a.tensor(0)), as_float(a.tensor(1, "weight"))
    rank = len(weight.dims) - 2
    a.refuse(len(x.dims) != rank + 2, "these ranks")
    windows, groups = windows_of(a, [state.axes.extent(dim) for dim in weight.dims[2:]])
    if groups > 1:
        seen = _grouped(state, (x, weight), node, groups, windows[0])
    else:
        channels, inner = weight.dims[:2] if not windows[0].transposed else weight.dims[1::-1]
        state.axes.unify(x.dims[1], inner)
        seen = _Seen(x=x, weight=weight, inner=inner, channels=channels)
    outputs = [_output(state, (x, weight), node, k, windows) for k in range(rank)]
    inside, value = [], seen.x
    for k, window in enumerate(windows, start=2):
        index, valid = _index(outputs[k - 2], weight.dims[k], window, length(x.dims[k]))
        inside.append(valid)
        value = elsewhere(state, value, k, index)
    dims = (x.dims[0], seen.channels, *outputs, seen.inner, *weight.dims[2:])
    product = mapped("({0} * {1})", value, seen.weight, kind="f", dims=dims)
    for valid in inside:
        product = chosen(valid, product, scalar(0.0))
    over = tuple(range(rank + 2, len(dims)))
    result = state.reduce("sum", product, over) if any(dims[k] for k in over) else product
    bias = a.optional(2, "bias")
    if bias is None:
        return result
    return state.add(result, renamed(as_float(bias), (bias.dims[0], *[()] * rank)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The operands as each output channel sees them."""

    x: Value
    weight: Value
    inner: Dim
    """Channels of the input, those of one group."""
    channels: Dim


def _grouped(
    state: Lowering, operands: tuple[Value, Value], node: Node, groups: int, window: Window
) -> _Seen:
    """With an input whose channels are those of the output channel's group."""
    x, weight = operands
    if weight.tensor is None:
        raise UncoveredError("has no template for a convolution of computed values")
    name, outputs = weight.tensor.name, node.shape[1]
    share = state.axes.extent(x.dims[1]) // groups
    if window.transposed:
        channels: Dim = (state.axes.new(outputs, f"{name}.shape[1] * {groups}"),)
        size = f"({name}.shape[0] // {groups})"
        inner: Dim = () if share == 1 else (state.axes.new(share, size),)
        each = outputs // groups
        within_group = mapped(f"({{0}} % {each})", iota(channels))
    else:
        channels, inner = weight.dims[0], weight.dims[1]
        each = outputs // groups
    own = iota(inner) if inner else whole(0)
    read = mapped(f"({{0}} / {each} * {share} + {{1}})", iota(channels), own)
    if window.transposed:
        weight = elsewhere(state, elsewhere(state, weight, 0, read), 1, within_group)
    return _Seen(x=elsewhere(state, x, 1, read), weight=weight, inner=inner, channels=channels)


def _output(
    state: Lowering,
    operands: tuple[Value, Value],
    node: Node,
    axis: int,
    windows: Sequence[Window],
) -> Dim:
    """A new axis for the outputs along one spatial axis."""
    made = node.shape[axis + 2]
    extent, taps = (state.axes.size(v.dims[axis + 2]) for v in operands)
    return () if made == 1 else (state.axes.new(made, windows[axis].size(extent, taps)),)


def _index(out: Dim, tap: Dim, window: Window, extent: Value) -> tuple[Value, Value]:
    """Where an output reads through a tap, and whether there is anything."""
    o, k = (iota(d) if d else whole(0) for d in (out, tap))
    if not window.transposed:
        text = f"({{0}} * {window.stride} + {{1}} * {window.dilation} - {window.padding})"
        index = mapped(text, o, k)
        return index, within(index, extent)
    reach = mapped(f"({{0}} + {window.padding} - {{1}} * {window.dilation})", o, k)
    index = mapped(f"({{0}} / {window.stride})", reach)
    text = f"(({{0}} % {window.stride} == 0) & ({{1}} >= 0) & ({{1}} < {{2}}))"
    return index, mapped(text, reach, index, extent, kind="b")


GATHERED: dict[str, Rule] = dict.fromkeys(CONVOLUTIONS, _convolution)
