"""The kernel of one phase: passes over a row, or over a tile of columns, with folds between."""

from collections.abc import Callable, Sequence

from agents.offline import address
from agents.offline.axes import UncoveredError
from agents.offline.expressions import START, STEP, lane_type
from agents.offline.nest import Place
from agents.offline.passes import Phase, along, passes
from agents.offline.program import Value
from agents.offline.simt.expressions import Scalars, row_value
from agents.offline.simt.fold import Folds, Variable
from agents.offline.simt.threads import Threads, place
from agents.offline.work import Work, work

FLUSH = 64
"""Floats that one accumulator takes before its sum goes to the next level."""
NONE = "2147483647"


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
        self.lines: list[str] = []

    def emit(self) -> None:
        for k, total in enumerate(self.before):
            self.lines.append(f"const V {self.names[id(total)]} = whole[{k}];")
        self.lines += place(self.nest, self.threads)
        self.lines += self.scalars.offsets()
        self.lines += [f"V p_{self.names[id(t)]} = {START[t.text]};" for t in self.phase.totals]
        for number in range(self.passes.last + 1):
            self._between(number)
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
        sums = [v for v in job.reductions if v.text == "sum"]
        for v in job.reductions:
            name = self.names[id(v)]
            self.lines.append(f"V {name} = {START[v.text.removeprefix('arg')]};")
            if v.text.startswith("arg"):
                self.lines.append(f"I w_{name} = {NONE};")
        if sums:
            self.lines.append(f"int since{job.number} = 0;")
            self.lines += [f"V d_{self.names[id(v)]} = 0.0f;" for v in sums]
        flush = self._flush(job.number, sums)
        if job.scans:
            self._scan(job)
        elif self.nest.mode == "column":
            self._columns(job, flush)
        else:
            self._lanes(job, flush)
        for v in sums:
            self.lines.append(f"{self.names[id(v)]} += d_{self.names[id(v)]};")
        for v in job.reductions:
            self._fold(v)

    def _flush(self, number: int, sums: Sequence[Value]) -> list[str]:
        """After some additions the sum moves up a level: its error stays that of few."""
        if not sums:
            return []
        moves = " ".join(
            f"d_{n} += {n}; {n} = 0.0f;" for n in (self.names[id(v)] for v in sums)
        )  # fmt: skip
        return [f"if (++since{number} == {FLUSH}) {{ since{number} = 0; {moves} }}"]

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
        out = [define(v) for v in job.values]
        out += [self._accumulate(v) for v in job.reductions]
        for t in job.totals:
            name = f"p_{self.names[id(t)]}"
            out.append(
                f"if (live) {name} = {STEP[t.text].format(name, self.scalars.ref(t.args[0]))};"
            )
        return out + [store(k) for k in job.stores]

    def _define(self, value: Value) -> str:
        return self.scalars.define(value)

    def _store(self, k: int) -> str:
        name = self.scalars.ref(self.nest.outputs[k])
        return f"if (live) {self.scalars.store(self.nest.stores[k], name)}"

    def _accumulate(self, v: Value) -> str:
        name, x = self.names[id(v)], self.scalars.ref(v.args[0])
        if not v.text.startswith("arg"):
            return f"{name} = {STEP[v.text].format(name, x)};"
        if len(self.nest.reduced) != 1:
            raise UncoveredError("has no template for an index over several axes")
        at = f"(int)i_{self.nest.reduced[0].name}" if self.nest.mode == "column" else "(int)c"
        wins = f"{first(v.text)}({x}, {at}, {name}, w_{name})"
        return f"if ({wins}) {{ {name} = {x}; w_{name} = {at}; }}"

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

    def _column_scan(self, value: Value) -> str:
        if value.op != "scan":
            return self._define(value)
        name, x = self.names[id(value)], self.scalars.ref(value.args[0])
        sign = "*" if value.text.endswith("prod") else "+"
        return f"c_{name} = c_{name} {sign} {x}; const V {name} = c_{name};"

    def _row_scan(self, value: Value) -> str:
        name = self.names[id(value)]
        if value.op == "load":
            return f"const {lane_type(value)} {name} = on ? {self.scalars.load(value)} : 0;"
        if value.op != "scan":
            return self._define(value)
        x, across = self.scalars.ref(value.args[0]), self.threads.across
        sign = "*" if value.text.endswith("prod") else "+"
        self.folds.array("s0_V", "V", self.threads.threads)
        return "\n".join([
            f"V {name} = on ? {x} : {one(value)};",
            f"s0_V[TID] = {name}; SYNC;",
            f"for (int d = 1; d < {across}; d <<= 1) {{",
            f"const V o = lane >= d ? s0_V[TID - d] : {one(value)}; SYNC;",
            f"{name} = {name} {sign} o; s0_V[TID] = {name}; SYNC;", "}",
            f"const V l_{name} = s0_V[TID - lane + {across - 1}]; SYNC;",
            f"{name} = {name} {sign} c_{name}; c_{name} = c_{name} {sign} l_{name};",
        ])  # fmt: skip

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


def combined(how: str, name: str) -> str:
    """The statement that takes another thread's value in."""
    return f"{name} = {STEP[how].format(name, f'o_{name}')};"


def first(how: str) -> str:
    """The prelude's function that compares an extreme and its place with another."""
    return "first_max" if how == "argmax" else "first_min"


def one(scan: Value) -> str:
    """What a scan begins with."""
    return "1.0f" if scan.text.endswith("prod") else "0.0f"
