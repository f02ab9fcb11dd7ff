"""The C of values, one element a thread."""

from agents.offline import address
from agents.offline.axes import UncoveredError
from agents.offline.expressions import lane_type, places, pointers
from agents.offline.nest import Nest, Place
from agents.offline.passes import along
from agents.offline.program import Value
from agents.offline.simt.dialect import Dialect


class Scalars:
    """Names and expressions of the values of one nest."""

    def __init__(self, nest: Nest, dialect: Dialect) -> None:
        self.nest, self.dialect = nest, dialect
        self.names = {id(v): f"v{k}" for k, v in enumerate(nest.values)}

    def define(self, value: Value) -> str:
        """The declaration of the value from its arguments' names."""
        return f"const {lane_type(value)} {self.names[id(value)]} = {self.expression(value)};"

    def ref(self, value: Value) -> str:
        """How another expression names the value."""
        return self.expression(value) if value.op in ("const", "count") else self.names[id(value)]

    def expression(self, value: Value) -> str:
        if value.op == "load":
            return self.load(value)
        if value.op == "const":
            return value.text
        if value.op == "count":
            leaves = self.nest.program.axes.leaves(value.over)
            kind = "int" if value.kind == "i" else "float"
            return f"(({kind})({' * '.join(f'm{leaf}' for leaf in leaves) or '1'}))"
        if value.op == "iota":
            return f"((int){self._position(value)})"
        text = value.text.replace("__builtin_convertvector({0}, V)", "((float){0})")
        text = text.replace("__builtin_convertvector({0}, I)", "((int){0})")
        return text.replace("(~{0})", "(!{0})").format(*(self.ref(a) for a in value.args))

    def load(self, value: Value) -> str:
        """The element at `c`."""
        place = self.nest.places[id(value)]
        where, _ = address.address(self.nest, place)
        if place.dtype == "bool":
            return f"(*({where}) != 0)"
        return f"*({where})" if value.kind == "f" else f"((int)*({where}))"

    def store(self, place: Place, name: str) -> str:
        """Writes the element at `c`."""
        where, _ = address.address(self.nest, place)
        return f"*({where}) = ({self.kind(place)}){name};"

    def kind(self, place: Place) -> str:
        """The C type of the tensor's elements."""
        known = address.C_TYPES.get(place.dtype)
        if known is None:
            raise UncoveredError(f"has no template for {place.dtype} results")
        return self.dialect.types.get(known, known)

    def offsets(self) -> list[str]:
        """Where the row of each tensor begins."""
        return [
            f"const long o_{p.variable} = {address.offset(self.nest, p)};"
            for p in places(self.nest)
        ]

    def addresses(self) -> list[str]:
        """Declarations of the tensors' parameters."""
        return [
            self.dialect.address(
                address.C_TYPES.get(p.dtype, "float"), p.base, written=p.written
            )
            for p in pointers(self.nest)
        ]  # fmt: skip

    def wide(self, place: Place) -> bool:
        """Whether neighbouring lanes of the tensor are neighbouring floats."""
        return place.dtype == "float32" and address.stride(place, self.nest.lanes) == "1"

    def aligned(self, place: Place, vector: int) -> list[str]:
        """Conditions under which each read of `vector` floats is aligned."""
        found = [f"(size_t){place.base} % {4 * vector} == 0"]
        if place.variable != place.base:
            found.append(f"x_{place.variable} % {vector} == 0")
        for group in self.nest.groups[:-1]:
            step = address.stride(place, group)
            if step is not None:
                found.append(f"{step} % {vector} == 0")
        return found

    def _position(self, value: Value) -> str:
        leaves = self.nest.program.axes.leaves(value.axes)
        group = next((g for g in self.nest.groups if g.leaves == leaves), None)
        if group is None:
            raise UncoveredError("has no template for an index along these axes")
        return "c" if group is self.nest.lanes else f"i_{group.name}"


def row_value(nest: Nest, value: Value) -> bool:
    """Whether each row has one such value, to be computed between passes."""
    return not along(nest, value) and value.op in ("load", "map", "iota")
