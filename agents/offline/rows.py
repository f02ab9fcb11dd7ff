"""The C++ of the work on one row, or on one tile of lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.offline import address
from agents.offline.address import Lanes
from agents.offline.axes import UncoveredError
from agents.offline.body import EACH, Body
from agents.offline.expressions import lane_type, number_step
from agents.offline.passes import along
from agents.offline.work import work

if TYPE_CHECKING:
    from agents.offline.phase import PhaseEmitter
    from agents.offline.program import Value

BLOCK = 16384
"""Elements that a float accumulator takes before its sum goes to double."""


class RowEmitter:
    """Passes over a row with what stands between them."""

    def __init__(self, phase: PhaseEmitter) -> None:
        self.phase, self.nest, self.out = phase, phase.nest, phase.out
        self.kernel, self.at = phase.kernel, phase.passes.at
        self.names, self.kept = phase.kernel.names, phase.kept
        self.unrolled = f"#pragma GCC unroll {phase.schedule.unroll}"
        self.columns = self.nest.mode == "column"
        if self.nest.mode == "map":
            self.begin, self.end = "begin", "end"
        else:
            self.begin, self.end = "0", self.nest.lanes.name

    def emit(self) -> None:
        if self.nest.mode == "map":
            self.out.append("const long begin = tile * CHUNK;")
            name = self.nest.lanes.name
            self.out.append(f"const long end = begin + CHUNK < {name} ? begin + CHUNK : {name};")
        if self.columns:
            self.out.append("const long j0 = tile * TILE;")
            self.out.append(f"const long left0 = {self.nest.lanes.name} - j0;")
        for number in range(self.phase.passes.last + 1):
            self._between(number)
            self._pass(number)
        self._row_results()

    # -- between passes -----------------------------------------------------------------------

    def _between(self, number: int) -> None:
        """Values of the row itself that are known before this pass."""
        for value in self.phase.phase.needed:
            if along(self.nest, value) or not self.nest.leaves(value):
                if value.op != "map" or self.nest.leaves(value) or self.at[id(value)] != number:
                    continue
                if number == 0:
                    continue
            if self.at[id(value)] != number or value.op not in ("load", "map", "iota"):
                continue
            self._row_value(value)

    def _row_value(self, value: Value) -> None:
        name, kind = self.names[id(value)], lane_type(value)
        if not self.kernel.is_array(value):
            self.out.append(
                f"const {kind} {name} = {self.kernel.expression(value, Lanes(left=None))};"
            )
            return
        text = self.kernel.expression(value, Lanes(left="left0 - u * W"), "[u]")
        self.out += [
            f"{kind} {name}[U];", self.unrolled,
            f"{EACH} {{ const long c = j0 + u * W; (void)c; {name}[u] = {text}; }}",
        ]  # fmt: skip

    def _row_results(self) -> None:
        for k in self.phase.phase.outputs:
            value = self.nest.outputs[k]
            if not along(self.nest, value):
                self._store_row(k, value)
        for total in self.phase.phase.totals:
            argument = total.args[0]
            if not along(self.nest, argument):
                self._add_row(total, argument)

    def _store_row(self, k: int, value: Value) -> None:
        place, name = self.nest.stores[k], self.kernel.ref(value, "[u]")
        if not self.columns:
            kind = address.C_TYPES.get(place.dtype, "float")
            at = f"y{k}[o_y{k}]"
            self.out.append(f"{at} = ({kind}){name}[0];")
            return
        stream = self.phase.schedule.stream
        full = address.store(self.nest, place, Lanes(left=None), name, stream=stream)
        tail = address.store(self.nest, place, Lanes(left="left0 - u * W"), name, stream=stream)
        self.out += [
            f"if (left0 >= TILE) {EACH} {{ const long c = j0 + u * W; {full} }}",
            f"else {EACH} {{ const long c = j0 + u * W; {tail} }}",
        ]

    def _add_row(self, total: Value, argument: Value) -> None:
        rows = {a for g in self.nest.kept for a in g.leaves}
        if set(self.nest.leaves(argument)) != rows:
            raise UncoveredError("has no template for a sum over some of the rows")
        name = f"p_{self.names[id(total)]}"
        ref = self.kernel.ref(argument, "[u]")
        if not self.columns:
            step = number_step(total.text, name, f"(double){ref}[0]")
            self.out.append(f"{name} = {step};")
            return
        step = number_step(total.text, name, f"(double){ref}[i]")
        self.out.append(f"{EACH} for (long i = 0; i < valid(left0 - u * W); ++i) {name} = {step};")

    # -- one pass -----------------------------------------------------------------------------

    def _pass(self, number: int) -> None:
        found = work(self.nest, self.phase.phase, self.phase.passes, number)
        if found is None:
            return
        body = Body(self, found)
        self.out += body.declarations()
        if self.columns:
            self._columns(body)
        else:
            self._lanes(body)
        self.out += body.results()

    def _columns(self, body: Body) -> None:
        """Lanes run along a kept axis; the reduced axes are plain loops inside."""
        for full in (True, False):
            self.out.append("if (left0 >= TILE) {" if full else "else {")
            left = None if full else "left0 - u * W"
            if body.sums:
                self.out.append("long since = 0;")
            for g in self.nest.reduced:
                if body.reverse:
                    self.out.append(
                        f"for (long i_{g.name} = {g.name} - 1; i_{g.name} >= 0; --i_{g.name}) {{"
                    )
                else:
                    self.out.append(
                        f"for (long i_{g.name} = 0; i_{g.name} < {g.name}; ++i_{g.name}) {{"
                    )
            self.out += [self.unrolled, f"{EACH} {{", "const long c = j0 + u * W; (void)c;"]
            self.out += body.lines(Lanes(left=left))
            self.out.append("}")
            if body.sums:
                self.out.append(f"if (++since >= 128) {{ since = 0; {body.flush()} }}")
            self.out += ["}"] * len(self.nest.reduced)
            self.out.append("}")

    def _lanes(self, body: Body) -> None:
        """Lanes run along the row."""
        outer = self.nest.reduced[:-1]
        for g in outer:
            self.out.append(f"for (long i_{g.name} = 0; i_{g.name} < {g.name}; ++i_{g.name}) {{")
        if body.reverse:
            self._backwards(body)
        elif body.sums and self.nest.mode == "row":
            since = f"since{body.number}"
            self.out += [
                f"for (long begin = 0; begin < {self.end}; begin += {BLOCK}) {{",
                f"const long end = begin + {BLOCK} < {self.end} ? begin + {BLOCK} : {self.end};",
            ]
            self._forwards(body, "begin", "end")
            self.out += [
                f"{since} += end - begin;",
                f"if ({since} >= {BLOCK // 2}) {{ {since} = 0; {body.flush()} }}",
                "}",
            ]
        else:
            self._forwards(body, self.begin, self.end)
        self.out += ["}"] * len(outer)

    def _forwards(self, body: Body, begin: str, end: str) -> None:
        self.out += [
            "{", f"long j = {begin};",
            f"for (; j + U * W <= {end}; j += U * W) {{", self.unrolled,
            f"{EACH} {{", "const long c = j + u * W;",
            *body.lines(Lanes(left=None)), "}", "}",
            f"for (; j < {end}; j += W) {{",
            f"const long c = j, left = {end} - j; constexpr int u = 0; (void)u;",
            *body.lines(Lanes(left="left")), "}", "}",
        ]  # fmt: skip

    def _backwards(self, body: Body) -> None:
        """From the end, the incomplete vector first."""
        self.out += [
            "{", f"const long whole = {self.end} / W * W;",
            f"if (whole < {self.end}) {{",
            f"const long c = whole, left = {self.end} - whole; constexpr int u = 0; (void)u;",
            *body.lines(Lanes(left="left")), "}",
            "for (long c = whole - W; c >= 0; c -= W) {", "constexpr int u = 0; (void)u;",
            *body.lines(Lanes(left=None)), "}", "}",
        ]  # fmt: skip
