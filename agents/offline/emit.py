"""The C++ of a nest under a schedule."""

from agents.offline import address, prelude
from agents.offline.expressions import Expressions, parameters
from agents.offline.nest import Nest
from agents.offline.passes import phases
from agents.offline.phase import PhaseEmitter
from agents.offline.schedule import Schedule


def source(nest: Nest, schedule: Schedule) -> str:
    """The complete C++ source of the kernel `fused`."""
    kernel = Expressions(nest)
    parts = phases(nest)
    for part in parts:
        PhaseEmitter(kernel, schedule, part).emit()
    _numbers(kernel, {k for part in parts for k in part.outputs})
    head = f'extern "C" void fused({", ".join(p for p, _ in parameters(nest))}) {{'
    return prelude.text("\n".join([head, *kernel.lines, "}", ""]), schedule.width)


def _numbers(kernel: Expressions, stored: set[int]) -> None:
    """Outputs that are one number, made of totals."""
    for k, value in enumerate(kernel.nest.outputs):
        if k not in stored:
            kernel.scalar(value)
            kind = address.C_TYPES[kernel.nest.stores[k].dtype]
            kernel.lines.append(f"*y{k} = ({kind}){kernel.names[id(value)]}[0];")
