"""A host with a device that nobody has: made-up verdicts and times, the same for the same source.

It stands at the machine seam, so that campaigns of thousands of pairs try everything around it:
loop, agents, ledger, Prefect. Its rows go into ledgers that are marked as simulated, and no other.
"""

import asyncio
import json
import os
import random
import re
from pathlib import Path

from data import simulated
from data.errors import MachineError
from data.records import (
    Admission,
    BuildResult,
    Card,
    Contract,
    Device,
    MeasureJob,
    Operator,
    RunResult,
    RunStatus,
    Shape,
    TensorSpec,
    Timing,
)
from targets.machines.local import LocalMachine
from targets.machines.remote import RemoteMachine
from targets.machines.ssh import Destination, ssh_machine
from targets.remote.peaks import Probe
from tasks.machines import OTHERS

NAME = "simulated"
ENVIRONMENT = {"driver": "1", "torch": "simulated"}
WORK_S = "KFORGE_SIMULATED_STEP_S"
"""The environment variable with the seconds that a measurement takes."""
HOST = "KFORGE_SIMULATED_HOST"
"""The environment variable with a host that is real, as JSON: measurements are spent there."""
PATIENCE_S = 60.0


def device(index: int = 0) -> Device:
    """One of the devices that are not there."""
    return Device(
        name=f"sim-{index}",
        target="cpu",
        vendor="nobody",
        arch="none",
        machine=NAME,
        index=index,
        execution="simulated",
    )


def install(runs: Path) -> None:
    """Makes the machine reachable in this process, and the folder a simulated ledger."""
    simulated.mark(runs)
    OTHERS[NAME] = lambda _, folder: SimulatedMachine(folder / ".cache", locks=folder / ".leases")


class SimulatedMachine(LocalMachine):
    """Answers at once or after a while, which may pass on a host behind SSH; leases are real."""

    def __init__(self, cache: Path, *, locks: Path) -> None:
        super().__init__(cache, locks=locks)
        self._host = behind_ssh(os.environ[HOST], scope=str(cache)) if HOST in os.environ else None

    def close(self) -> None:
        super().close()
        if self._host is not None:
            self._host.close()

    async def _alone(self, key: str, device: Device) -> None:
        """Nobody else can use what is not there."""

    async def probe(self, device: Device) -> Probe:
        return Probe(card=Card(peak_gb_s=1.0), environment=ENVIRONMENT)

    async def admit(
        self,
        operator: Operator,
        contract: Contract,
        device: Device,
        *,
        timed: bool = False,
        insist: bool = False,
    ) -> Admission:
        tensor = (TensorSpec(name="x", shape=(1024,), dtype="float32"),)
        shape = Shape(
            name="full", inputs=tensor, outputs=tensor, flops=1e6, moved_bytes=8192.0, floor_us=1.0
        )
        return Admission(
            outcome=None,
            reason="",
            shapes=(shape,),
            card=Card(peak_gb_s=1.0),
            environment=ENVIRONMENT,
        )

    async def build(self, operator: Operator, candidate_source: str, device: Device) -> BuildResult:
        chance = random.Random(f"build {candidate_source}").random()
        ok = chance > 0.1
        return BuildResult(ok=ok, route="launcher", detail="" if ok else "error: does not compile")

    async def measure(self, job: MeasureJob) -> RunResult:
        seconds = os.environ.get(WORK_S, "0")
        if self._host is None:
            await asyncio.sleep(float(seconds))
        elif (done := await self._host.run(("sleep", seconds), PATIENCE_S)).code != 0:
            raise MachineError(f"the host's work ended with {done.code}: {done.err!r}")
        draw = random.Random(job.source)
        if draw.random() < 0.15:
            return RunResult(status=RunStatus.WRONG, detail="17 elements", execution="simulated")
        return RunResult(
            status=RunStatus.RAN,
            authored=True,
            timings=(_timing(job.source),),
            execution="simulated",
            environment=ENVIRONMENT,
        )


def behind_ssh(told: str, *, scope: str) -> RemoteMachine:
    """The host that a test has started."""
    fields = json.loads(told)
    return ssh_machine(Destination(**{**fields, "config": Path(fields["config"])}), scope=scope)


def _timing(source: str) -> Timing:
    """As fast as the source says that it is (`tests/simulated/model.py`)."""
    said = re.search(r"speed (\d+\.\d+) \*/", source)
    ratio = float(said[1]) if said else 1.0
    return Timing(
        shape="full",
        baseline="eager",
        ratio=ratio,
        low=ratio / 1.01,
        high=ratio * 1.01,
        pair_ratios=(ratio,) * 3,
        candidate_us=1000.0 / ratio,
        baseline_us=1000.0,
        floor_us=1.0,
        samples_us=(1000.0 / ratio,) * 8,
    )
