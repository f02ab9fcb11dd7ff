"""Whether a machine judges rightly: a kernel that is known to be right is judged there."""

from data.errors import MachineError
from data.records import Contract, Device, MeasureJob, Operator, RunStatus
from targets import TARGETS
from tasks.stages import Machine

PATIENCE_S = 120.0


async def check(machine: Machine, device: Device) -> None:
    """MachineError unless the target's verified example builds and is right on the device."""
    brief = TARGETS[device.target].brief(device)
    operator = Operator(name="health", source=brief.example_operator)
    build = await machine.build(operator, brief.example_kernel, device)
    if not build.runs:
        raise _unsound(device, f"does not build: {build.detail}")
    job = MeasureJob(
        operator=operator,
        device=device,
        contract=Contract(),
        source=brief.example_kernel,
        pairs=0,
        thorough=False,
        deadline_s=PATIENCE_S,
    )
    async with machine.turn(device):
        run = await machine.measure(job)
    if run.status is not RunStatus.RAN:
        raise _unsound(device, f"is {run.status.value} there: {run.detail}")


def _unsound(device: Device, what: str) -> MachineError:
    said = " ".join(what.split())[:300]
    return MachineError(f"{device.machine} fails its health kernel: the verified example {said}")
