"""The judge on an NVIDIA device: `pytest -m gpu tests/targets/test_nvidia_judge.py` there."""

import pytest

from data.operator import find
from data.records import BuildResult, Contract, Device, MeasureJob, RunStatus
from data.verdict import judge
from targets.remote import cuda, nvml
from targets.remote.borrowed import CUDA, borrowed
from targets.remote.build import build
from targets.remote.cuda_driver import Driver
from targets.remote.measure import measure
from tests.targets.nvidia_cases import CASES, Case
from tests.targets.rig import Rig

GPU = Device(name="gpu", target="nvidia", vendor="nvidia", arch="sm_90")
FAULTY = [case for case in CASES if not case.honest]
HONEST = [case for case in CASES if case.honest]


def test_the_cases_hold_enough_of_each() -> None:
    """At least eight cheats and four honest kernels, under names of their own."""
    assert len(FAULTY) >= 8
    assert len(HONEST) >= 4
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(compile(case.source, case.name, "exec") for case in CASES)


def test_without_a_driver_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the device is no error until somebody wants to use one."""
    monkeypatch.setattr(nvml, "_library", lambda: None)
    assert nvml.identity(0) == {"device": "", "uuid": "", "driver": ""}
    assert nvml.reading(0).told() == {"throttled": "no"}
    assert nvml.processes(0) == frozenset()
    assert nvml.used_bytes(0) == 0
    assert cuda.Cuda(9).nodes() == ()


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_case_gets_its_verdict(case: Case, rig: Rig) -> None:
    """Neither a cheat is accepted nor an honest kernel refused."""
    (operator,) = find([case.operator])
    job = MeasureJob(
        operator=operator,
        device=GPU,
        contract=Contract(),
        source=case.source,
        deadline_s=case.deadline_s,
    )
    built: BuildResult = build(operator, case.source, GPU, zygote=rig.zygote, cache=rig.folder)
    assert built.ok, built.detail
    run = measure(job, zygote=rig.zygote, cache=rig.folder)
    found = judge(job.contract, built, run)
    assert found.verdict in case.verdicts, (found.reason, run.detail, run.log[-500:])
    if case.at_most is not None:
        assert found.speedup is not None
        assert found.speedup <= case.at_most
    if run.status is RunStatus.RAN:
        assert run.environment["uuid"]
        assert int(run.environment["sm_mhz"]) > 0


@pytest.mark.gpu
def test_memory_goes_on_as_a_descriptor() -> None:
    """Two mappings of one allocation show each other's writes."""
    here = cuda.Cuda(0)
    mine = here.new(1 << 20)
    theirs = Driver(0).attach(mine.fd, mine.size)
    mine.flat.fill_(7)
    here.wait()
    other = borrowed(theirs.address, mine.size, kind=CUDA)
    assert int(other.min()) == 7
    mine.free()
