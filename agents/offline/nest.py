"""How a program is looped over: which axes are rows, which are reduced, in how many passes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.offline.axes import Axes, Dim, UncoveredError
from agents.offline.program import Program, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Adjacent axes that every tensor walks as one."""

    name: str
    """Of the C++ variable of its length."""
    leaves: Dim
    size: str
    extent: int
    reduced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a tensor lies: stride by leaf axis, as an expression and at the traced size."""

    variable: str
    base: str
    dtype: str
    strides: dict[int, tuple[str, int]]
    written: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """The loops of a program."""

    mode: str
    """`map`: nothing is reduced along rows; `row`: lanes run along the reduced axis; `column`:
    lanes run along a kept axis."""
    program: Program
    values: tuple[Value, ...]
    outputs: tuple[Value, ...]
    groups: tuple[Group, ...]
    places: dict[int, Place]
    """By id of a load."""
    stores: tuple[Place, ...]

    @property
    def lanes(self) -> Group:
        """The group that vector lanes run along."""
        return self.groups[-1]

    @property
    def kept(self) -> tuple[Group, ...]:
        return tuple(g for g in self.groups if not g.reduced)

    @property
    def reduced(self) -> tuple[Group, ...]:
        return tuple(g for g in self.groups if g.reduced)

    @property
    def over(self) -> frozenset[int]:
        return frozenset(leaf for g in self.reduced for leaf in g.leaves)

    def total(self, value: Value) -> bool:
        """Whether the value is one number made of all rows."""
        return value.op == "reduce" and (
            self.mode == "map" or not set(self.program.axes.leaves(value.over)) & self.over
        )

    def leaves(self, value: Value) -> frozenset[int]:
        return frozenset(self.program.axes.leaves(value.axes))


def plan(program: Program, *, apart: frozenset[int] = frozenset()) -> Nest:
    """The nest; UncoveredError when reductions run along different axes.

    The axes `apart` are not walked together with others.
    """
    axes = program.axes
    over = _reduced(program)
    outputs = _in_stages(program, over) if over else program.outputs
    staged = replace(program, outputs=outputs)
    values = staged.values()
    # A tensor that is read at computed places too has the strides of its load.
    places = {id(v): _elsewhere(v) for v in values if v.op == "map" and v.tensor}
    places |= {id(v): _load(axes, v) for v in values if v.op == "load"}
    stores = tuple(
        _store(axes, v, k, d) for k, (v, d) in enumerate(zip(outputs, program.dtypes, strict=True))
    )
    alone = [frozenset(axes.leaves(v.axes)) for v in values if v.op == "iota"]
    joining = Joining(
        axes=axes,
        over=over,
        places=(*places.values(), *stores),
        apart=(*alone, *([apart] if apart else [])),
    )
    groups = joining.groups(_order(axes, values, outputs, over))
    mode = "map" if not over else ("row" if groups[-1].reduced else "column")
    return Nest(
        mode=mode, program=staged, values=values, outputs=outputs, groups=groups,
        places=places, stores=stores,
    )  # fmt: skip


def _reduced(program: Program) -> frozenset[int]:
    """The axes that rows run along; empty when everything is reduced at once or nothing."""
    found: set[frozenset[int]] = set()
    for value in program.values():
        if value.op not in ("reduce", "scan") and value.text != "flip":
            continue
        over = frozenset(program.axes.leaves(value.over))
        everything = frozenset(program.axes.leaves(value.args[0].axes))
        if value.text == "flip":
            raise UncoveredError("has no template for aten.flip away from a scan")
        if value.op == "scan" or over != everything or value.text.startswith("arg"):
            found.add(over)
    if len(found) > 1:
        raise UncoveredError("has no template that reduces along different axes")
    return next(iter(found), frozenset())


def _in_stages(program: Program, over: frozenset[int]) -> tuple[Value, ...]:
    """The outputs with every full reduction as one along rows and one over what is left."""
    axes = program.axes
    made: dict[int, Value] = {}
    for value in program.values():
        args = tuple(made[id(a)] for a in value.args)
        new = value if args == value.args else replace(value, args=args)
        if value.op == "reduce" and value.text in ("sum", "max", "min"):
            full = axes.leaves(value.over)
            if set(full) > over:
                inner = replace(
                    new, over=tuple(a for a in full if a in over),
                    dims=tuple((a,) for a in full if a not in over),
                )  # fmt: skip
                rest = tuple(a for a in full if a not in over)
                new = replace(new, args=(inner,), over=rest)
        made[id(value)] = new
    return tuple(made[id(o)] for o in program.outputs)


def _load(axes: Axes, value: Value) -> Place:
    tensor = value.tensor
    assert tensor is not None
    strides: dict[int, tuple[str, int]] = {}
    for d, (dim, step) in enumerate(zip(tensor.axes, tensor.strides, strict=True)):
        for axis in dim:
            strides |= axes.strides(axis, f"{tensor.name}.stride({d})", step)
    return Place(variable=tensor.name, base=tensor.base, dtype=tensor.dtype, strides=strides)


def _elsewhere(value: Value) -> Place:
    """Of a tensor that is read at computed places: no axis walks it."""
    tensor = value.tensor
    assert tensor is not None
    return Place(variable=tensor.name, base=tensor.base, dtype=tensor.dtype, strides={})


def _store(axes: Axes, value: Value, number: int, dtype: str) -> Place:
    name, strides, step, expr = f"y{number}", {}, 1, "1"
    for leaf in reversed(axes.leaves(value.axes)):
        strides[leaf] = (expr, step)
        step *= axes.extent((leaf,))
        expr = f"{expr} * ({axes.size((leaf,))})"
    return Place(variable=name, base=name, dtype=dtype, strides=strides, written=True)


def _order(
    axes: Axes, values: Sequence[Value], outputs: Sequence[Value], over: frozenset[int]
) -> Dim:
    """All axes, outermost first, as the tensor that has most of them is laid out.

    Reduced axes of a window, which no tensor has, are outside of the results'.
    """
    known = [axes.leaves(v.axes) for v in values if v.op == "load"]
    known += [axes.leaves(v.axes) for v in outputs]
    every = {leaf for v in values for leaf in axes.leaves(v.axes)}
    order = max(known, key=len, default=())
    for v in values:
        if v.op == "load" and v.tensor and set(axes.leaves(v.axes)) == set(order):
            order = axes.leaves(a for dim in v.tensor.axes for a in dim)
            break
    missing = every - set(order)
    if missing:
        order = max((axes.leaves(v.axes) for v in outputs), key=len, default=())
        missing = every - set(order)
        order = (*sorted(missing), *order)
    if missing - over:
        raise UncoveredError("has no template for axes that no single tensor has")
    return order


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What decides whether neighbouring axes are walked as one."""

    axes: Axes
    over: frozenset[int]
    places: tuple[Place, ...]
    apart: tuple[frozenset[int], ...]
    """Sets of axes that must stay apart from the others."""

    def groups(self, order: Dim) -> tuple[Group, ...]:
        """The axes in as few groups as can be, outermost first."""
        runs: list[list[int]] = []
        for leaf in order:
            if runs and self._joined(runs[-1][-1], leaf):
                runs[-1].append(leaf)
            else:
                runs.append([leaf])
        return tuple(self._group(k, run) for k, run in enumerate(runs or [[]]))

    def _group(self, number: int, run: Sequence[int]) -> Group:
        return Group(
            name=f"n{number}",
            leaves=tuple(run),
            size=self.axes.size(run),
            extent=self.axes.extent(run),
            reduced=bool(run) and run[0] in self.over,
        )

    def _joined(self, a: int, b: int) -> bool:
        if (a in self.over) != (b in self.over):
            return False
        if any((a in together) != (b in together) for together in self.apart):
            return False
        return all(self._adjacent(place, a, b) for place in self.places)

    def _adjacent(self, place: Place, a: int, b: int) -> bool:
        """Whether the tensor has both axes in a row, or neither."""
        if a not in place.strides or b not in place.strides:
            return a not in place.strides and b not in place.strides
        return place.strides[a][1] == place.strides[b][1] * self.axes.extent((b,))
