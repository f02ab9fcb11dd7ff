"""Where a tensor's lanes are: the C++ of loads and stores."""

from dataclasses import dataclass

from agents.offline.axes import UncoveredError
from agents.offline.nest import Group, Nest, Place
from agents.offline.program import Value

C_TYPES = {
    "float32": "float", "int64": "int64_t", "int32": "int32_t", "int16": "int16_t",
    "int8": "int8_t", "uint8": "uint8_t", "bool": "uint8_t",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The vector in hand: first element `c`, and how many are valid (`left`; None: all)."""

    left: str | None

    @property
    def count(self) -> str:
        return self.left or "W"


def stride(place: Place, group: Group) -> str | None:
    """C++ of a group's stride; None where the tensor does not have it, `1` when adjacent."""
    if not group.leaves or group.leaves[-1] not in place.strides:
        return None
    if place.strides[group.leaves[-1]][1] == 1:
        return "1"
    return f"s_{place.variable}_{group.name}"


def offset(nest: Nest, place: Place) -> str:
    """Offset of a row: everything but the lanes and the reduced groups."""
    terms = [f"x_{place.variable}"] if place.variable != place.base else []
    for group in nest.kept:
        if group is nest.lanes:
            continue
        step = stride(place, group)
        if step is not None:
            terms.append(f"i_{group.name} * {step}")
    return " + ".join(terms) or "0"


def address(nest: Nest, place: Place) -> tuple[str, str | None]:
    """C++ of the address of the lane `c`, and the stride along lanes."""
    text = f"{place.base} + o_{place.variable}"
    for group in nest.reduced:
        step = stride(place, group)
        if step is not None and group is not nest.lanes:
            text += f" + i_{group.name} * {step}"
    step = stride(place, nest.lanes)
    if step is not None:
        text += " + c" if step == "1" else f" + c * {step}"
    return text, step


def load(nest: Nest, value: Value, lanes: Lanes) -> str:
    """C++ of the loaded lanes."""
    place = nest.places[id(value)]
    where, step = address(nest, place)
    kind = C_TYPES[place.dtype]
    if kind == "float":
        return _floats(where, step, lanes)
    if step is None:
        text = f"splat_i((int32_t)*({where}))"
    elif step == "1":
        text = f"load_index<{kind}>({where}, {lanes.count})"
    else:
        raise UncoveredError(f"has no template for a transposed {place.dtype} tensor")
    return f"({text} != 0)" if place.dtype == "bool" else text


def _floats(where: str, step: str | None, lanes: Lanes) -> str:
    if step is None:
        return f"splat(*({where}))"
    if step != "1":
        return f"load_strided({where}, {step}, {lanes.count})"
    return f"load({where})" if lanes.left is None else f"load_n({where}, {lanes.left})"


def store(nest: Nest, place: Place, lanes: Lanes, value: str, *, stream: bool) -> str:
    """C++ statement that writes lanes."""
    where, step = address(nest, place)
    kind = C_TYPES.get(place.dtype)
    if kind is None:
        raise UncoveredError(f"has no template for {place.dtype} results")
    if step is None:
        return f"*({where}) = ({kind}){value}[0];"
    if place.dtype == "bool":
        value = f"({value} & 1)"
    if step != "1":
        return f"store_strided({where}, {step}, {value}, {lanes.count});"
    if kind != "float":
        return f"store_as<{kind}>({where}, {value}, {lanes.count});"
    name = "stream" if stream else "store"
    if lanes.left is None:
        return f"{name}({where}, {value});"
    return f"{name}_n({where}, {value}, {lanes.left});"
