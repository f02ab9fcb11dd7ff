"""All kernels of a program: one a phase, and one that finishes its sums over all rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.offline import prelude
from agents.offline.expressions import START, STEP, numbers, pointers
from agents.offline.nest import Nest
from agents.offline.passes import Phase, phases
from agents.offline.program import Value
from agents.offline.simt.accumulators import combined
from agents.offline.simt.dialect import Dialect
from agents.offline.simt.expressions import Scalars
from agents.offline.simt.fold import Folds, Variable
from agents.offline.simt.kernel import PhaseKernel
from agents.offline.simt.threads import Threads, grid

FINISH = 256
"""Threads that add up the parts of a total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """The source, and the Python lines that call its kernels in order."""

    source: str
    calls: tuple[str, ...]
    device: str
    """Python of the device that they run on."""


def kernels(nest: Nest, dialect: Dialect, threads: Threads) -> Kernels:
    """The program under this layout of threads; UncoveredError where it has none."""
    writer = _Writer(nest, dialect, threads)
    parts = phases(nest)
    for number, phase in enumerate(parts):
        writer.phase(number, phase)
    stored = {k for part in parts for k in part.outputs}
    writer.finish(len(parts) - 1, tuple(k for k in range(len(nest.outputs)) if k not in stored))
    text = dialect.prelude + prelude.chosen("\n".join(writer.lines) + "\n", "simt.h")
    return Kernels(source=text, calls=tuple(writer.calls), device=writer.device)


class _Writer:
    def __init__(self, nest: Nest, dialect: Dialect, threads: Threads) -> None:
        self.nest, self.dialect, self.threads = nest, dialect, threads
        self.scalars = Scalars(nest, dialect)
        self.totals: list[Value] = []
        self.pending: tuple[Value, ...] = ()
        self.lines: list[str] = []
        self.device = f"{pointers(nest)[0].base}.device"
        every = sum(nest.total(v) for v in nest.values)
        self.calls: list[str] = []
        if every:
            self.calls.append(
                f"whole = torch.empty({every}, dtype=torch.float32, device={self.device})"
            )

    def phase(self, number: int, phase: Phase) -> None:
        """A kernel; the totals of the one before are finished first."""
        self.finish(number - 1, ())
        kernel = PhaseKernel(self.scalars, self.threads, phase, self.totals)
        kernel.emit()
        self.calls.append(f"g{number} = {grid(self.nest, self.threads)}")
        further: list[tuple[str, str]] = []
        if self.totals:
            further.append((self.dialect.address("float", "whole", written=False), "whole"))
        if phase.totals:
            size = f"{len(phase.totals)} * g{number}"
            self.calls.append(
                f"part{number} = torch.empty({size}, dtype=torch.float32, device={self.device})"
            )
            further.append((self.dialect.address("float", "part", written=True), f"part{number}"))
        self._kernel(f"fused{number}", kernel.lines, kernel.folds, f"g{number}", further)
        self.pending = phase.totals

    def finish(self, number: int, outputs: Sequence[int]) -> None:
        """The totals of phase `number`, and the outputs that are one number."""
        if not self.pending and not outputs:
            return
        folds = Folds(dialect=self.dialect, threads=Threads(threads=FINISH, across=FINISH))
        names, lines = self.scalars.names, []
        for k, total in enumerate(self.totals):
            lines.append(f"const V {names[id(total)]} = whole[{k}];")
        for k, total in enumerate(self.pending):
            name = names[id(total)]
            step = STEP[total.text].format(name, f"part[{k} * blocks + j]")
            lines.append(f"V {name} = {START[total.text]};")
            lines.append(f"for (long j = TID; j < blocks; j += {FINISH}) {name} = {step};")
            lines += folds.block([Variable(kind="V", name=name)], combined(total.text, name))
            lines.append(f"if (TID == 0) whole[{len(self.totals) + k}] = {name};")
        self.totals += self.pending
        lines += self._numbers(outputs)
        further = [(self.dialect.address("float", "whole", written=True), "whole")]
        if self.pending:
            further.append((self.dialect.address("float", "part", written=False), f"part{number}"))
        further.append(("long blocks", f"g{number}"))
        self.pending = ()
        self._kernel(f"finish{number}", lines, folds, "1", further)

    def _numbers(self, outputs: Sequence[int]) -> list[str]:
        """Outputs that are one number, made of totals and constants."""
        lines: dict[str, None] = {}
        for k in outputs:
            self._scalar(self.nest.outputs[k], lines)
        stores = [
            f"if (TID == 0) *y{k} = ({self.scalars.kind(self.nest.stores[k])})"
            f"{self.scalars.ref(self.nest.outputs[k])};"
            for k in outputs
        ]
        return [*lines, *stores]

    def _scalar(self, value: Value, lines: dict[str, None]) -> None:
        if self.nest.total(value) or value.op in ("const", "count"):
            return
        for argument in value.args:
            self._scalar(argument, lines)
        text = self.scalars.define(value)
        if value.op == "load":
            text = text.replace(f" + o_{self.nest.places[id(value)].variable}", "")
        lines.setdefault(text)

    def _kernel(
        self, name: str, lines: Sequence[str], folds: Folds, blocks: str,
        further: Sequence[tuple[str, str]],
    ) -> None:  # fmt: skip
        known = [*zip(self.scalars.addresses(), (p.base for p in pointers(self.nest)), strict=True)]
        known += further
        known += [(f"long {n}", e) for n, e in numbers(self.nest).items()]
        threads = folds.threads.threads
        head = self.dialect.head(name, [d for d, _ in known], threads)
        self.lines += [head, *folds.declarations, *lines, "}"]
        arguments = ", ".join(e for _, e in known)
        self.calls.append(f"K.{name}(grid=({blocks},), block=({threads},), args=({arguments},))")
