"""A single convolution in a program, of any dimension: operands, sizes and the nest behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.offline.axes import UncoveredError
from agents.offline.lookups import sizes
from agents.offline.lower import lower
from agents.offline.lowering import Lowering, as_float
from agents.offline.nest import Group, Nest, Place, plan
from agents.offline.program import Value
from agents.offline.reshapes import renamed
from agents.offline.rule import Arguments
from agents.offline.window import Window
from data.records import Node

RANK = 3
"""Spatial axes of the kernels; a convolution of fewer has outer ones of length 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """The operands, as contiguous tensors, and where the result lies."""

    x: Value
    weight: Value
    windows: tuple[Window, ...]
    """One a spatial axis."""
    groups: int
    result: Value

    @property
    def transposed(self) -> bool:
        return self.windows[0].transposed

    @property
    def apart(self) -> int:
        """The distance of neighbouring outputs with the same taps along the last axis."""
        return self.windows[-1].stride if self.transposed else 1

    @property
    def flat(self) -> bool:
        """Whether a panel may run over the end of a row: all outputs have all taps."""
        return not self.transposed or all(w.stride == 1 for w in self.windows)


class ConvolutionNest:
    """One operator with a single convolution whose result is only mapped elementwise."""

    def __init__(self, graph: Sequence[Node]) -> None:
        self._found: list[Convolution] = []
        program = lower(graph, dict.fromkeys(CONVOLUTIONS, self._rule))
        if len(self._found) != 1:
            raise UncoveredError("has no template for several convolutions")
        self.convolution = self._found[0]
        self._axes = program.axes
        spatial = self.convolution.result.dims[-len(self.convolution.windows) :]
        along = spatial if self.convolution.flat else spatial[-1:]
        lanes = frozenset(program.axes.leaves(a for dim in along for a in dim))
        nest = plan(program, apart=lanes)
        if nest.mode != "map" or any(map(nest.total, nest.values)):
            raise UncoveredError("has no template for a reduction behind a convolution")
        if frozenset(nest.lanes.leaves) != lanes:
            raise UncoveredError("has no template for this layout of a convolution")
        if any(v.op == "iota" and nest.leaves(v) & lanes for v in nest.values):
            raise UncoveredError("has no template for an index behind a convolution")
        self.nest: Nest = self._spread(nest)

    def _rule(self, state: Lowering, _: Node, a: Arguments) -> Value:
        """The convolution as a value of its own; bias is added behind it."""
        x, weight = _whole(a.tensor(0)), _whole(a.tensor(1, "weight"))
        rank = len(weight.dims) - 2
        a.refuse(not 1 <= rank <= RANK or len(x.dims) != rank + 2, "these ranks")
        taps = [state.axes.extent(dim) for dim in weight.dims[2:]]
        windows, groups = windows_of(a, taps)
        result = self._result(state, (x, weight), windows, groups)
        self._found.append(
            Convolution(x=x, weight=weight, windows=windows, groups=groups, result=result)
        )
        bias = a.optional(2, "bias")
        if bias is None:
            return result
        return state.add(result, renamed(as_float(bias), (bias.dims[0], *[()] * rank)))

    def _result(
        self,
        state: Lowering,
        operands: tuple[Value, Value],
        windows: Sequence[Window],
        groups: int,
    ) -> Value:
        """The result, on new spatial axes."""
        x, weight = operands
        assert x.tensor is not None
        assert weight.tensor is not None
        channels = weight.dims[0]
        if windows[0].transposed:
            channels = weight.dims[1]
            if groups > 1:
                made = state.axes.extent(channels) * groups
                channels = (state.axes.new(made, f"{weight.tensor.name}.shape[1] * {groups}"),)
        dims = [x.dims[0], channels]
        for k, window in enumerate(windows, start=2):
            extent = state.axes.extent(x.dims[k])
            expr = window.size(f"{x.tensor.name}.shape[{k}]", f"{weight.tensor.name}.shape[{k}]")
            made = window.outputs(extent)
            dims.append(() if made == 1 else (state.axes.new(made, expr),))
        return Value(op="product", dims=tuple(dims))

    def _spread(self, nest: Nest) -> Nest:
        """The nest with lanes that are `apart` outputs from each other."""
        apart, lanes = self.convolution.apart, nest.lanes.leaves
        if apart == 1:
            return nest

        def wider(place: Place) -> Place:
            steps = {
                leaf: (f"({expr}) * {apart}", step * apart) if leaf in lanes else (expr, step)
                for leaf, (expr, step) in place.strides.items()
            }
            return replace(place, strides=steps)

        return replace(
            nest,
            places={key: wider(p) for key, p in nest.places.items()},
            stores=tuple(map(wider, nest.stores)),
        )

    # -- what the kernel is told --------------------------------------------------------------

    @property
    def pointers(self) -> tuple[tuple[str, str], ...]:
        """The operands: name in the kernel and Python expression."""
        return (("X", self._name(self.convolution.x)), ("F", self._name(self.convolution.weight)))

    def _name(self, value: Value) -> str:
        assert value.tensor is not None
        return value.tensor.name

    def numbers(self) -> dict[str, str]:
        """Lengths and strides: name in the kernel and Python expression."""
        c = self.convolution
        x, f = self._name(c.x), self._name(c.weight)
        whole = f"{f}.shape[1]" if c.transposed else f"{f}.shape[0] // {c.groups}"
        found = {
            "batch": f"{x}.shape[0]",
            "IC": f"{x}.shape[1] // {c.groups}",
            "OC": whole,
            "xn": f"{x}.stride(0)",
            "xc": f"{x}.stride(1)",
        }
        first = RANK - len(c.windows)
        for axis in range(RANK):
            k = axis - first
            spatial = k >= 0
            found[f"in{axis}"] = f"{x}.shape[{k + 2}]" if spatial else "1"
            found[f"taps{axis}"] = f"{f}.shape[{k + 2}]" if spatial else "1"
            found[f"step{axis}"] = f"{x}.stride({k + 2})" if spatial else "0"
            size = f"{f}.shape[{k + 2}]"
            window = c.windows[k] if spatial else Window()
            found[f"out{axis}"] = window.size(f"{x}.shape[{k + 2}]", size) if spatial else "1"
        return found | {f"q{leaf}": self._axes.size((leaf,)) for leaf in self._leaves()}

    def _leaves(self) -> list[int]:
        """The axes of the result that are not lanes."""
        axes = self._axes.leaves(a for dim in self.convolution.result.dims for a in dim)
        return [leaf for leaf in axes if leaf not in self.nest.lanes.leaves]

    def axes(self) -> list[str]:
        """C++ of the description of each spatial axis."""
        windows = [*[Window()] * (RANK - len(self.convolution.windows)), *self.convolution.windows]
        return [
            f"{{in{k}, out{k}, taps{k}, {w.stride}, {w.padding}, {w.dilation}, step{k}}}"
            for k, w in enumerate(windows)
        ]

    def indices(self, names: Sequence[str]) -> list[str]:
        """C++ of the index along each group but the lanes, from those of the result's axes.

        `names` are the variables for batch, channel and the three spatial axes.
        """
        of: dict[int, str] = {}
        dims = self.convolution.result.dims
        own = [*names[:2], *names[len(names) - len(dims) + 2 :]]
        for name, dim in zip(own, dims, strict=True):
            text = name
            for leaf in reversed(self._axes.leaves(dim)):
                of[leaf] = f"({text}) % q{leaf}"
                text = f"({text}) / q{leaf}"
        return [
            f"const long i_{g.name} = {self._index(g, of)};"
            for g in self.nest.groups
            if g is not self.nest.lanes
        ]

    def _index(self, group: Group, of: dict[int, str]) -> str:
        text = "0"
        for leaf in group.leaves:
            if leaf not in of:
                raise UncoveredError("has no template for these axes behind a convolution")
            text = f"(({text}) * q{leaf} + {of[leaf]})"
        return text


def _whole(value: Value) -> Value:
    """The value, if it is a contiguous tensor that was given."""
    tensor = value.tensor
    if tensor is None or value.op != "load" or value.kind != "f":
        raise UncoveredError("has no template for a convolution of computed values")
    if tensor.name != tensor.base or value.dims != tensor.axes:
        raise UncoveredError("has no template for a convolution of a view")
    return value


def windows_of(a: Arguments, taps: Sequence[int]) -> tuple[tuple[Window, ...], int]:
    """The windows of the spatial axes, and the number of groups."""
    name = a.op.split(".")[1]
    if name == "convolution":
        transposed = bool(a.plain(6, "transposed"))
        places = (3, 4, 5, 7, 8)
    else:
        transposed = "transpose" in name
        places = (3, 4, 7, 5, 6) if transposed else (3, 4, 5, 99, 6)
    stride, padding, dilation, output = (
        _each(a, (place, word), len(taps), default)
        for place, word, default in zip(
            places,
            ("stride", "padding", "dilation", "output_padding"),
            (1, 0, 1, 0),
            strict=False,
        )
    )
    windows = tuple(
        Window(taps=t, stride=s, padding=p, dilation=d, output_padding=o, transposed=transposed)
        for t, s, p, d, o in zip(taps, stride, padding, dilation, output, strict=True)
    )
    return windows, int(a.plain(places[4], "groups", 1))


def _each(a: Arguments, where: tuple[int, str], rank: int, default: int) -> tuple[int, ...]:
    value = a.plain(*where, default)
    a.refuse(isinstance(value, str), "padding by name")
    return sizes(value, rank)


CONVOLUTIONS = (
    *(f"conv{n}d" for n in (1, 2, 3)),
    *(f"conv_transpose{n}d" for n in (1, 2, 3)),
    "convolution",
)
