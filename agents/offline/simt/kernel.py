"""The kernel of one phase: passes over a row, or over a tile of columns, with folds between."""

from collections.abc import Callable, Sequence

from agents.offline import address
from agents.offline.axes import UncoveredError
from agents.offline.expressions import START, STEP, lane_type
from agents.offline.nest import Place
from agents.offline.passes import Phase, along, passes
from agents.offline.program import Value
from agents.offline.simt.accumulators import NONE, Accumulators, combined, first, position
from agents.offline.simt.expressions import Scalars, row_value
from agents.offline.simt.fold import Folds, Variable
from agents.offline.simt.kept import buffers
from agents.offline.simt.scans import along_row, down_column, one
from agents.offline.simt.threads import Threads, place
from agents.offline.work import Work, work


class PhaseKernel:
    """Writes the body of a kernel; `lines` and `folds.shared` are its text."""

    def __init__(
        self, scalars: Scalars, threads: Threads, phase: Phase, totals: Sequence[Value]
    ) -> None:
        self.scalars, self.nest, self.threads, self.phase = scalars, scalars.nest, threads, phase
        self.names, self.before = scalars.names, totals
        self.folds = Folds(dialect=scalars.dialect, threads=threads)
        self.passes = passes(self.nest, phase, keep=False)
        if self.passes.kept:
            raise UncoveredError("has no template of threads that goes on behind a scan")
        self.buffers: dict[int, int] = {}
        """By id of a value that a later pass reads: the output whose place it has till then."""
        if threads.keep:
            order = passes(self.nest, phase, keep=True)
            self.buffers = buffers(self.nest, phase, order)
            self.passes = order if self.buffers else self.passes
        self.sums = Accumulators(self.names, (), 1)
        self.number = 0
        self.lines: list[str] = []

    def emit(self) -> None:
        for k, total in enumerate(self.before):
            self.lines.append(f"const V {self.names[id(total)]} = whole[{k}];")
        self.lines += place(self.nest, self.threads)
        self.lines += self.scalars.offsets()
        self.lines += [f"V p_{self.names[id(t)]} = {START[t.text]};" for t in self.phase.totals]
        for number in range(self.passes.last + 1):
            self._between(number)
            self.number = number
            found = work(self.nest, self.phase, self.passes, number)
            if found is not None:
                self._pass(found)
        self._row_results()
        self._partial_totals()

    def _between(self, number: int) -> None:
        for value in self.phase.needed:
            if row_value(self.nest, value) and self.passes.at[id(value)] == number:
                self.lines.append(self.scalars.define(value))

    # -- one pass -----------------------------------------------------------------------------

    def _pass(self, job: Work) -> None:
        several = self.threads.several if self._along_row(job) else 1
        self.sums = Accumulators(self.names, job.reductions, several)
        self.lines += self.sums.declare(job.number)
        flush = self.sums.flush(job.number)
        if job.scans:
            self._scan(job)
        elif self.nest.mode == "column":
            self._columns(job, flush)
        elif several > 1:
            self._shares(job, flush)
        else:
            self._lanes(job, flush)
        self.lines += self.sums.join()
        for v in job.reductions:
            self._fold(v)

    def _along_row(self, job: Work) -> bool:
        """Whether the pass is one loop along a row that adds something up."""
        one = self.nest.mode == "row" and len(self.nest.reduced) == 1
        return one and bool(job.reductions) and not job.scans

    def _shares(self, job: Work, flush: list[str]) -> None:
        """Several elements of a row at once, each with an accumulator of its own."""
        several, across, end = self.sums.several, self.threads.across, self.nest.lanes.name
        element = self._element(job, self._define, self._store)
        start = f"c{job.number}"
        self.lines += [
            f"long {start} = lane;",
            f"for (; {start} + {(several - 1) * across} < {end}; {start} += {several * across}) {{",
            "#pragma unroll",
            f"for (int u = 0; u < {several}; ++u) {{",
            f"const long c = {start} + u * {across};",
            *element,
            "}",
            *flush,
            "}",
            f"for (long c = {start}; c < {end}; c += {across}) {{",
            "const int u = 0;",
            *element,
            "}",
        ]

    def _fold(self, v: Value) -> None:
        name = self.names[id(v)]
        fold = self.folds.columns if self.nest.mode == "column" else self.folds.lanes
        if not v.text.startswith("arg"):
            self.lines += fold([Variable(kind="V", name=name)], combined(v.text, name))
            return
        best, where = name, f"w_{name}"
        take = f"if ({first(v.text)}(o_{best}, o_{where}, {best}, {where}))"
        self.lines += fold(
            [Variable(kind="V", name=best), Variable(kind="I", name=where)],
            f"{take} {{ {best} = o_{best}; {where} = o_{where}; }}",
        )
        self.lines.append(f"if ({where} == {NONE}) {where} = 0;")

    def _lanes(self, job: Work, flush: list[str]) -> None:
        """The threads run along the row, side by side."""
        outer = self.nest.reduced[:-1] if self.nest.mode == "row" else ()
        start, end = ("begin", "end") if self.nest.mode == "map" else ("0", self.nest.lanes.name)
        self.lines += [
            f"for (long i_{g.name} = 0; i_{g.name} < {g.name}; ++i_{g.name}) {{" for g in outer
        ]
        wide = self._wide(job)
        across = self.threads.across
        if wide:
            step = self.threads.vector
            fits = [f"{self.nest.lanes.name} % {step} == 0"]
            for p in wide.values():
                fits += self.scalars.aligned(p, step)
            self.lines += [
                f"if ({' && '.join(dict.fromkeys(fits))}) {{",
                f"for (long c0 = {start} + lane * {step}; c0 < {end}; c0 += {across * step}) {{",
                *self._vector(job, wide), *flush, "}", "} else {",
            ]  # fmt: skip
        self.lines += [
            f"for (long c = {start} + lane; c < {end}; c += {across}) {{",
            *self._element(job, self._define, self._store), *flush, "}",
        ]  # fmt: skip
        self.lines += ["}"] * (len(outer) + bool(wide))

    def _wide(self, job: Work) -> dict[int, Place]:
        """Loads (by id) and stores (by number) of several neighbouring floats at once."""
        if self.threads.vector == 1:
            return {}
        nest = self.nest
        found = {id(v): nest.places[id(v)] for v in job.values if v.op == "load"}
        found |= {k: nest.stores[k] for k in job.stores}
        return {key: p for key, p in found.items() if self.scalars.wide(p)}

    def _vector(self, job: Work, wide: dict[int, Place]) -> list[str]:
        step = self.threads.vector
        loads, stores = [], []
        for value in job.values:
            if id(value) in wide:
                name = self.names[id(value)]
                where, _ = address.address(self.nest, wide[id(value)])
                loads.append(
                    f"float r_{name}[{step}]; {{ const long c = c0; load4(r_{name}, {where}); }}"
                )
        for k in job.stores:
            if k in wide:
                where, _ = address.address(self.nest, wide[k])
                loads.append(f"float w{k}[{step}];")
                stores.append(f"if (live) {{ const long c = c0; store4({where}, w{k}); }}")

        def define(value: Value) -> str:
            name = self.names[id(value)]
            return f"const V {name} = r_{name}[u];" if id(value) in wide else self._define(value)

        def store(k: int) -> str:
            return (
                f"w{k}[u] = {self.scalars.ref(self.nest.outputs[k])};"
                if k in wide
                else self._store(k)
            )

        body = self._element(job, define, store)
        return [*loads, "#pragma unroll", f"for (int u = 0; u < {step}; ++u) {{",
                "const long c = c0 + u; (void)c;", *body, "}", *stores]  # fmt: skip

    def _columns(self, job: Work, flush: list[str]) -> None:
        """A thread runs down its part of a column."""
        parts = self.threads.beside
        for k, g in enumerate(self.nest.reduced):
            start, step = ("beside", parts) if k == 0 else ("0", 1)
            self.lines.append(
                f"for (long i_{g.name} = {start}; i_{g.name} < {g.name}; i_{g.name} += {step}) {{"
            )
        self.lines += [*self._element(job, self._define, self._store), *flush]
        self.lines += ["}"] * len(self.nest.reduced)

    def _element(
        self, job: Work, define: Callable[[Value], str], store: Callable[[int], str]
    ) -> list[str]:
        """What is done with one element."""
        out: list[str] = []
        for v in job.values:
            out += [define(v), *self._kept(job, v)]
        out += [self._accumulate(v) for v in job.reductions]
        for t in job.totals:
            name = f"p_{self.names[id(t)]}"
            out.append(
                f"if (live) {name} = {STEP[t.text].format(name, self.scalars.ref(t.args[0]))};"
            )
        return out + [store(k) for k in job.stores]

    def _kept(self, job: Work, value: Value) -> list[str]:
        """Lays the value by, or nothing."""
        if id(value) not in self.buffers or job.read(value):
            return []
        place = self.nest.stores[self.buffers[id(value)]]
        return [f"if (live) {self.scalars.store(place, self.names[id(value)])}"]

    def _define(self, value: Value) -> str:
        at = self.passes.at[id(value)]
        if id(value) in self.buffers and at < self.number:
            where, _ = address.address(self.nest, self.nest.stores[self.buffers[id(value)]])
            return f"const V {self.names[id(value)]} = *({where});"
        return self.scalars.define(value)

    def _store(self, k: int) -> str:
        name = self.scalars.ref(self.nest.outputs[k])
        return f"if (live) {self.scalars.store(self.nest.stores[k], name)}"

    def _accumulate(self, v: Value) -> str:
        x, at = self.scalars.ref(v.args[0]), ""
        if v.text.startswith("arg"):
            reduced = [g.name for g in self.nest.reduced]
            at = position(reduced, column=self.nest.mode == "column")
        return self.sums.step(v, x, at)

    # -- scans --------------------------------------------------------------------------------

    def _scan(self, job: Work) -> None:
        """Along rows a block's width at a time, down columns one element after the other."""
        reverse = any(v.text.startswith("reverse_") for v in job.scans)
        if len(self.nest.reduced) != 1 or job.reductions or job.totals:
            raise UncoveredError("has no template of threads for this use of a scan")
        for v in job.scans:
            self.lines.append(f"V c_{self.names[id(v)]} = {one(v)};")
        name, across = self.nest.reduced[0].name, self.threads.across
        if self.nest.mode == "column":
            self.lines += [
                f"for (long k = 0; k < {name}; ++k) {{",
                f"const long i_{name} = {f'{name} - 1 - k' if reverse else 'k'};",
                *self._element(job, self._column_scan, self._store), "}",
            ]  # fmt: skip
            return
        self.lines += [
            f"for (long base = 0; base < {name}; base += {across}) {{",
            "const long at = base + lane;", f"const int on = at < {name};",
            f"const long c = {f'{name} - 1 - at' if reverse else 'at'};",
            *self._element(job, self._row_scan, self._store_on), "}",
        ]  # fmt: skip

    def _row_scan(self, value: Value) -> str:
        if value.op == "load":
            name = self.names[id(value)]
            return f"const {lane_type(value)} {name} = on ? {self.scalars.load(value)} : 0;"
        if value.op != "scan":
            return self._define(value)
        self.folds.array("s0_V", "V", self.threads.threads)
        x = self.scalars.ref(value.args[0])
        return along_row(value, self.names[id(value)], x, self.threads.across)

    def _column_scan(self, value: Value) -> str:
        if value.op != "scan":
            return self._define(value)
        return down_column(value, self.names[id(value)], self.scalars.ref(value.args[0]))

    def _store_on(self, k: int) -> str:
        name = self.scalars.ref(self.nest.outputs[k])
        return f"if (live && on) {self.scalars.store(self.nest.stores[k], name)}"

    # -- results ------------------------------------------------------------------------------

    def _row_results(self) -> None:
        """What a row or a column has one of; argmin and argmax mean their place."""
        once = "beside" if self.nest.mode == "column" else "lane"
        for k in self.phase.outputs:
            value = self.nest.outputs[k]
            if not along(self.nest, value):
                text = self.scalars.store(self.nest.stores[k], self.row_ref(value))
                self.lines.append(f"if (live && {once} == 0) {text}")
        for total in self.phase.totals:
            value = total.args[0]
            if along(self.nest, value):
                continue
            rows = {a for g in self.nest.kept for a in g.leaves}
            if set(self.nest.leaves(value)) != rows:
                raise UncoveredError("has no template for a sum over some of the rows")
            name = f"p_{self.names[id(total)]}"
            step = STEP[total.text].format(name, self.row_ref(value))
            self.lines.append(f"if (live && {once} == 0) {name} = {step};")

    def row_ref(self, value: Value) -> str:
        """The name of a row's value."""
        name = self.scalars.ref(value)
        return f"w_{name}" if value.op == "reduce" and value.text.startswith("arg") else name

    def _partial_totals(self) -> None:
        for k, total in enumerate(self.phase.totals):
            name = f"p_{self.names[id(total)]}"
            self.lines += self.folds.block(
                [Variable(kind="V", name=name)], combined(total.text, name)
            )
            self.lines.append(f"if (TID == 0) part[{k} * BLOCKS + BLOCK] = {name};")
