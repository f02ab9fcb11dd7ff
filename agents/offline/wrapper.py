"""The forward of a candidate: allocate the outputs, call the kernels, return."""

from collections.abc import Sequence

from agents.offline.module import Call
from agents.offline.program import Program


def call(program: Program, calls: Sequence[str], *, device: str = "") -> Call:
    """The body of `forward` with these lines in its middle; the outputs lie on `device`."""
    body = list(program.setup)
    on = f", device={device}" if device else ""
    for k, (value, dtype) in enumerate(zip(program.outputs, program.dtypes, strict=True)):
        sizes = ", ".join(program.axes.size(d) for d in value.dims)
        comma = "," if len(value.dims) == 1 else ""
        body.append(f"y{k} = torch.empty(({sizes}{comma}), dtype=torch.{dtype}{on})")
    body += calls
    results = ", ".join(f"y{k}" for k in range(len(program.outputs)))
    comma = "," if program.several and len(program.outputs) == 1 else ""
    body.append(f"return {results}{comma}" if program.several else "return y0")
    return Call(inputs=program.inputs, body=tuple(body))


def once(kernel: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The line that calls a kernel of C++ with these Python expressions."""
    return (f"K.{kernel}(args=({', '.join(arguments)},))",)
