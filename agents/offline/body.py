"""The C++ of one pass: what it does with a vector, and the accumulators around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.offline import address
from agents.offline.axes import UncoveredError
from agents.offline.expressions import START, STEP, lane_type, number_step

if TYPE_CHECKING:
    from agents.offline.address import Lanes
    from agents.offline.program import Value
    from agents.offline.rows import RowEmitter
    from agents.offline.work import Work

EACH = "for (int u = 0; u < U; ++u)"


class Body:
    """What one pass does with a vector."""

    def __init__(self, row: RowEmitter, work: Work) -> None:
        self.row, self.nest, self.number = row, row.nest, work.number
        self.work, self.values, self.scans = work, work.values, work.scans
        self.reductions, self.totals, self.stores = work.reductions, work.totals, work.stores
        self.reverse = any(v.text.startswith("reverse_") for v in self.scans)
        self.sums = [v for v in self.reductions if v.text == "sum"]

    # -- accumulators -------------------------------------------------------------------------

    def declarations(self) -> list[str]:
        out: list[str] = []
        for v in (*self.reductions, *self.totals):
            name = self.row.names[id(v)]
            start = START[v.text.removeprefix("arg")]
            out.append(f"V a_{name}[U]; {EACH} a_{name}[u] = splat({start});")
            if v.text.startswith("arg"):
                out.append(f"I w_{name}[U]; {EACH} w_{name}[u] = splat_i(2147483647);")
        for v in self.sums:
            name = self.row.names[id(v)]
            wide = f"V d_{name}[U] = {{}};" if self.row.columns else f"double d_{name} = 0.0;"
            out.append(wide)
        if self.sums and self.nest.mode == "row":
            out.append(f"long since{self.number} = 0;")
        for v in self.scans:
            name, one = self.row.names[id(v)], "1.0" if v.text.endswith("prod") else "0.0"
            if self.row.columns:
                out.append(f"V c_{name}[U], e_{name}[U];")
                out.append(f"{EACH} {{ c_{name}[u] = splat({one}f); e_{name}[u] = V{{}}; }}")
            else:
                out.append(f"double c_{name} = {one};")
        return out

    def flush(self) -> str:
        """Moves float sums to the wider ones."""
        text = ""
        for v in self.sums:
            name = self.row.names[id(v)]
            if self.row.columns:
                text += f"{EACH} {{ d_{name}[u] += a_{name}[u]; a_{name}[u] = V{{}}; }} "
            else:
                text += f"for (int u = 1; u < U; ++u) a_{name}[0] += a_{name}[u]; "
                text += f"d_{name} += hsum(a_{name}[0]); {EACH} a_{name}[u] = V{{}}; "
        return text

    def results(self) -> list[str]:
        """The reductions' values once the pass is over."""
        out: list[str] = [self.flush()]
        for v in self.reductions:
            name = self.row.names[id(v)]
            if self.row.columns:
                kind, source = ("I", "w") if v.text.startswith("arg") else ("V", "a")
                source = "d" if v.text == "sum" else source
                text = f"{source}_{name}[u]"
                if kind == "I":
                    text = f"({text} == 2147483647 ? splat_i(0) : {text})"
                out.append(f"{kind} {name}[U]; {EACH} {name}[u] = {text};")
            else:
                out += self._fold(v, name)
        for t in self.totals:
            name = self.row.names[id(t)]
            out += self._fold(t, name, target=f"p_{name}")
        return out

    def _fold(self, v: Value, name: str, target: str = "") -> list[str]:
        if v.text.startswith("arg"):
            largest = "true" if v.text == "argmax" else "false"
            return [f"const I {name} = hindex(a_{name}, w_{name}, U, {largest});"]
        if v.text == "sum" and not target:
            return [f"const V {name} = splat((float)d_{name});"]
        step = STEP[v.text].format(f"a_{name}[0]", f"a_{name}[u]")
        out = [f"for (int u = 1; u < U; ++u) a_{name}[0] = {step};"]
        if v.text == "sum":
            return [*out, f"{target} += hsum(a_{name}[0]);"]
        fold = f"hfold(a_{name}[0], [](V a, V b) {{ return {STEP[v.text].format('a', 'b')}; }})"
        if not target:
            return [*out, f"const V {name} = {fold};"]
        step = number_step(v.text, target, "x")
        return [*out, f"{{ const double x = {fold}[0]; {target} = {step}; }}"]

    # -- one vector ---------------------------------------------------------------------------

    def lines(self, lanes: Lanes) -> list[str]:
        out = self._prefetch() if lanes.left is None else []
        out += [self._define(v, lanes) for v in self.values]
        out += [self._keep(v, lanes) for v in self.row.phase.passes.kept if self._made(v)]
        out += [self._accumulate(v, lanes) for v in (*self.reductions, *self.totals)]
        stream = self.row.phase.schedule.stream
        for k in self.stores:
            name = self.row.names[id(self.nest.outputs[k])]
            out.append(address.store(self.nest, self.nest.stores[k], lanes, name, stream=stream))
        return out

    def _prefetch(self) -> list[str]:
        """Requests for what the same loads need some vectors ahead."""
        ahead = self.row.phase.schedule.prefetch
        if not ahead or self.number:
            return []
        found = []
        for value in self.values:
            if value.op == "load":
                where, step = address.address(self.nest, self.nest.places[id(value)])
                if step == "1":
                    found.append(f"__builtin_prefetch({where} + {ahead});")
        return list(dict.fromkeys(found))

    def _made(self, value: Value) -> bool:
        return self.row.at[id(value)] == self.number

    def _position(self) -> str:
        outer = ""
        for g in self.nest.reduced[:-1]:
            outer = f"({outer} + i_{g.name})" if outer else f"i_{g.name}"
            follower = self.nest.reduced[self.nest.reduced.index(g) + 1]
            outer = f"{outer} * {follower.name}"
        return f"{outer} + c" if outer else "c"

    def _keep(self, value: Value, lanes: Lanes) -> str:
        buffer, name = self.row.kept[id(value)], self.row.names[id(value)]
        where = f"{buffer} + {self._position()}"
        if value.kind != "f":
            return f"store_as<int32_t>({where}, {name}, {lanes.count});"
        if lanes.left is None:
            return f"store({where}, {name});"
        return f"store_n({where}, {name}, {lanes.left});"

    def _define(self, value: Value, lanes: Lanes) -> str:
        name, kind = self.row.names[id(value)], lane_type(value)
        if self.work.read(value):
            where = f"{self.row.kept[id(value)]} + {self._position()}"
            if kind == "I":
                text = f"load_index<int32_t>({where}, {lanes.count})"
            else:
                text = f"load({where})" if lanes.left is None else f"load_n({where}, {lanes.left})"
            return f"const {kind} {name} = {text};"
        if value.op == "scan":
            return self._scan(value, lanes)
        text = self.row.kernel.expression(value, lanes, "[u]")
        return f"const {kind} {name} = {text}; (void){name};"

    def _scan(self, value: Value, lanes: Lanes) -> str:
        name, x = self.row.names[id(value)], self.row.kernel.ref(value.args[0])
        reverse, how = value.text.startswith("reverse_"), value.text.removeprefix("reverse_")
        if self.row.columns:
            if how == "prod":
                return f"c_{name}[u] *= {x}; const V {name} = c_{name}[u];"
            # Kahan: ATen accumulates in double.
            return (
                f"const V z_{name} = {x} - e_{name}[u], n_{name} = c_{name}[u] + z_{name};"
                f" e_{name}[u] = (n_{name} - c_{name}[u]) - z_{name};"
                f" c_{name}[u] = n_{name}; const V {name} = n_{name};"
            )
        if reverse and how == "prod":
            raise UncoveredError("has no template for a reversed product")
        if reverse:
            lane, call = "0", "suffix_sum"
            if lanes.left is not None:
                x = f"(lanes() < (int32_t)({lanes.left}) ? {x} : V{{}})"
        else:
            lane, call = "W - 1", f"prefix_{how}"
        sign = "*" if how == "prod" else "+"
        return (
            f"const V q_{name} = {call}({x});"
            f" const V {name} = q_{name} {sign} splat((float)c_{name});"
            f" c_{name} {sign}= (double)q_{name}[{lane}];"
        )

    def _accumulate(self, v: Value, lanes: Lanes) -> str:
        name, x = self.row.names[id(v)], self.row.kernel.ref(v.args[0])
        if v.text.startswith("arg"):
            return self._arg(v, lanes, name, x)
        new = STEP[v.text].format(f"a_{name}[u]", x)
        if lanes.left is not None and not self.row.columns:
            new = f"(lanes() < (int32_t)({lanes.left}) ? {new} : a_{name}[u])"
        return f"a_{name}[u] = {new};"

    def _arg(self, v: Value, lanes: Lanes, name: str, x: str) -> str:
        """The first extreme, NaN before everything."""
        if len(self.nest.reduced) != 1:
            raise UncoveredError("has no template for an index over several axes")
        place = "(lanes() + (int32_t)c)"
        if self.row.columns:
            place = f"splat_i((int32_t)i_{self.nest.reduced[0].name})"
        sign = ">" if v.text == "argmax" else "<"
        old = f"a_{name}[u]"
        wins = f"({x} {sign} {old}) | (({x} != {x}) & ({old} == {old}))"
        if lanes.left is not None and not self.row.columns:
            wins = f"({wins}) & (lanes() < (int32_t)({lanes.left}))"
        return (
            f"{{ const I m = {wins}; {old} = m ? {x} : {old};"
            f" w_{name}[u] = m ? {place} : w_{name}[u]; }}"
        )
