"""The C++ of one parallel loop over rows."""

from agents.offline import address
from agents.offline.address import Lanes
from agents.offline.axes import UncoveredError
from agents.offline.expressions import START, Expressions, lane_type, number_step, places
from agents.offline.passes import Passes, Phase, passes
from agents.offline.program import Value
from agents.offline.rows import RowEmitter
from agents.offline.schedule import Schedule


class PhaseEmitter:
    """One parallel loop over rows."""

    def __init__(self, kernel: Expressions, schedule: Schedule, phase: Phase) -> None:
        self.kernel, self.nest, self.schedule = kernel, kernel.nest, schedule
        self.phase = phase
        self.passes: Passes = passes(self.nest, phase, keep=self.schedule.keep)
        self.out = kernel.lines
        self.kept = {id(v): f"k{k}" for k, v in enumerate(self.passes.kept)}

    def emit(self) -> None:
        for value in self.phase.needed:
            if not self.nest.leaves(value) and value.op in ("map", "load"):
                self._lone(value)
        self._open()
        RowEmitter(self).emit()
        self._close()

    def _lone(self, value: Value) -> None:
        if value.op == "load":
            place = self.nest.places[id(value)]
            text = address.load(self.nest, value, Lanes(left=None))
            text = text.replace(f" + o_{place.variable}", "")
            line = f"const {lane_type(value)} {self.kernel.names[id(value)]} = {text};"
            if line not in self.out:
                self.out.append(line)
        else:
            self.kernel.scalar(value)

    # -- the loop over rows -------------------------------------------------------------------

    def _open(self) -> None:
        nest, s = self.nest, self.schedule
        outer = [g for g in nest.kept if g is not nest.lanes]
        tile = {"map": "CHUNK", "column": "TILE"}.get(nest.mode)
        rows = " * ".join(g.name for g in outer) or "1"
        if tile:
            rows = f"{rows} * tiles"
        work = " * ".join(g.name for g in nest.groups)
        for total in self.phase.totals:
            start = START[total.text].replace("0.0f", "0.0")
            self.out.append(f"double whole_{self.kernel.names[id(total)]} = {start};")
        self.out += ["{", f"constexpr long U = {s.unroll};"]
        if tile:
            size = str(s.chunk) if nest.mode == "map" else "U * W"
            self.out.append(f"constexpr long {tile} = {size};")
            self.out.append(f"const long tiles = ({nest.lanes.name} + {tile} - 1) / {tile};")
        self.out.append(f"const long rows = {rows};")
        for total in self.phase.totals:
            part = f"part_{self.kernel.names[id(total)]}"
            start = START[total.text].replace("0.0f", "0.0")
            self.out.append(f"std::vector<double> {part}(omp_get_max_threads(), {start});")
        self.out.append(f"#pragma omp parallel if ({work} > 32768)")
        self.out.append("{")
        self._thread()
        self.out += ["#pragma omp for schedule(static)", "for (long row = 0; row < rows; ++row) {"]
        self.out.append("long rest = row;")
        if tile:
            self.out.append("const long tile = rest % tiles; rest /= tiles;")
        for g in reversed(outer):
            self.out.append(f"const long i_{g.name} = rest % {g.name}; rest /= {g.name};")
        self.out.append("(void)rest;")
        for place in places(nest):
            self.out.append(f"const long o_{place.variable} = {address.offset(nest, place)};")

    def _thread(self) -> None:
        """What each thread owns: buffers between passes and its share of the totals."""
        size = " * ".join(g.name for g in self.nest.reduced) or "1"
        for value in self.passes.kept:
            if self.nest.mode != "row":
                raise UncoveredError("has no template that scans down columns and goes on")
            kind = "float" if value.kind == "f" else "int32_t"
            name = self.kept[id(value)]
            self.out.append(f"std::vector<{kind}> s_{name}({size} + W);")
            self.out.append(f"{kind}* {name} = s_{name}.data();")
        for total in self.phase.totals:
            start = START[total.text].replace("0.0f", "0.0")
            self.out.append(f"double p_{self.kernel.names[id(total)]} = {start};")

    def _close(self) -> None:
        self.out.append("}")  # rows
        for total in self.phase.totals:
            name = self.kernel.names[id(total)]
            self.out.append(f"part_{name}[omp_get_thread_num()] = p_{name};")
        if self.schedule.stream and self.phase.outputs:
            self.out.append("stream_end();")
        self.out += ["}"]
        for total in self.phase.totals:
            name = self.kernel.names[id(total)]
            step = number_step(total.text, f"whole_{name}", "x")
            self.out.append(f"for (double x : part_{name}) whole_{name} = {step};")
        self.out.append("}")
        for total in self.phase.totals:
            name = self.kernel.names[id(total)]
            self.out.append(f"const V {name} = splat((float)whole_{name});")
