"""The C++ of values: how each is computed from the names of its arguments."""

from agents.offline import address
from agents.offline.address import Lanes
from agents.offline.axes import UncoveredError
from agents.offline.nest import Nest, Place
from agents.offline.passes import along
from agents.offline.program import Tensor, Value

START = {"sum": "0.0f", "prod": "1.0f", "max": "-HUGE_VALF", "min": "HUGE_VALF"}
STEP = {"sum": "{0} + {1}", "prod": "{0} * {1}", "max": "vmax({0}, {1})", "min": "vmin({0}, {1})"}


class Expressions:
    """Names of the values of one kernel, and the lines written so far."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.names = {id(v): f"v{k}" for k, v in enumerate(nest.values)}
        self.lines: list[str] = []

    def scalar(self, value: Value) -> None:
        """Defines a value that is made of totals and constants, once."""
        name = self.names[id(value)]
        declaration = f"const {lane_type(value)} {name} ="
        if self.nest.total(value) or any(line.startswith(declaration) for line in self.lines):
            return
        for a in value.args:
            self.scalar(a)
        self.lines.append(f"{declaration} {self.expression(value, Lanes(left=None))};")

    def expression(self, value: Value, lanes: Lanes, index: str = "") -> str:
        """C++ of the value from its arguments' names."""
        if value.op == "load":
            return address.load(self.nest, value, lanes)
        if value.op == "const":
            return f"splat({value.text})" if value.text[-1] in "fFN" else f"splat_i({value.text})"
        if value.op == "count":
            whole = f"splat_i((int32_t)({self._count(value)}))"
            return whole if value.kind == "i" else f"splat((float)({self._count(value)}))"
        if value.op == "iota":
            return self._iota(value)
        return value.text.format(*(self.ref(a, index) for a in value.args))

    def ref(self, value: Value, index: str = "") -> str:
        """How another expression names the value."""
        if value.op in ("const", "count"):
            return self.expression(value, Lanes(left=None))
        return self.names[id(value)] + (index if self.is_array(value) else "")

    def is_array(self, value: Value) -> bool:
        """Whether the value is held for each of the unrolled vectors (column mode, rows)."""
        if self.nest.mode != "column" or along(self.nest, value):
            return False
        return not self.nest.total(value) and bool(self.nest.leaves(value))

    def _count(self, value: Value) -> str:
        leaves = self.nest.program.axes.leaves(value.over)
        return " * ".join(f"m{leaf}" for leaf in leaves) or "1"

    def _iota(self, value: Value) -> str:
        leaves = self.nest.program.axes.leaves(value.axes)
        group = next((g for g in self.nest.groups if g.leaves == leaves), None)
        if group is None:
            raise UncoveredError("has no template for an index along these axes")
        if group is self.nest.lanes:
            return "(lanes() + (int32_t)c)"
        return f"splat_i((int32_t)i_{group.name})"


def lane_type(value: Value) -> str:
    return "V" if value.kind == "f" else "I"


def places(nest: Nest) -> tuple[Place, ...]:
    """All tensors, each once."""
    found = {p.variable: p for p in nest.places.values()}
    return (*found.values(), *nest.stores)


def parameters(nest: Nest) -> list[tuple[str, str]]:
    """The kernel's parameters: C++ declaration and Python expression."""
    found = []
    for place in pointers(nest):
        const = "" if place.written else "const "
        kind = address.C_TYPES.get(place.dtype, "float")
        found.append((f"{const}{kind}* __restrict__ {place.base}", place.base))
    return found + [(f"long {name}", value) for name, value in numbers(nest).items()]


def pointers(nest: Nest) -> tuple[Place, ...]:
    """The tensors whose addresses the kernel gets, each once."""
    return tuple({p.base: p for p in places(nest)}.values())


def numbers(nest: Nest) -> dict[str, str]:
    """Offsets, strides and lengths: name in the kernel and Python expression."""
    found: dict[str, str] = {}
    for place in places(nest):
        if place.variable != place.base:
            moved = f"{place.variable}.storage_offset() - {place.base}.storage_offset()"
            found[f"x_{place.variable}"] = moved
        for group in nest.groups:
            name = address.stride(place, group)
            if name not in (None, "1"):
                found[name] = place.strides[group.leaves[-1]][0]
    for value in nest.values:
        if value.op == "map" and value.tensor is not None:
            found |= _reach(value.tensor)
    for group in nest.groups:
        found[group.name] = group.size
    axes = nest.program.axes
    for value in nest.values:
        for leaf in axes.leaves(value.over) if value.op == "count" else ():
            found[f"m{leaf}"] = axes.size((leaf,))
    return found


def _reach(tensor: Tensor) -> dict[str, str]:
    """Strides of a tensor that is read at computed places, and its length in memory."""
    name = tensor.name
    found = {f"d_{name}_{k}": f"{name}.stride({k})" for k in range(len(tensor.axes))}
    steps = f"(n - 1) * s for n, s in zip({name}.shape, {name}.stride())"
    found[f"e_{name}"] = f"sum({steps}) + 1 if {name}.numel() else 0"
    return found


def number_step(how: str, a: str, b: str) -> str:
    """The scalar step of a total, NaN kept."""
    if how == "sum":
        return f"{a} + {b}"
    sign = ">=" if how == "max" else "<="
    return f"({a} {sign} {b} || {a} != {a}) ? {a} : {b}"
