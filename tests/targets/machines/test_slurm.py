"""A batch system's machine against scripts that behave as its tools do."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.errors import MachineError
from targets.machines.local import LocalMachine
from targets.machines.slurm import Batch, SlurmMachine
from tests.targets.machines import batch
from tests.targets.machines.contract import MachineContract

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.net


def made(folder: Path, *options: str) -> SlurmMachine:
    login = LocalMachine(folder / "login", locks=folder / "locks")
    place = Batch(folder=folder / "shared", code=ROOT, python=sys.executable, options=options)
    return SlurmMachine("cluster", login, place)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster")
    patch = pytest.MonkeyPatch()
    patch.setenv("PATH", f"{batch.installed(folder)}:{os.environ['PATH']}")
    controller = batch.Controller(folder)
    controller.start()
    yield folder
    controller.over.set()
    controller.join()
    patch.undo()


@pytest.fixture(scope="module")
def machine(folder: Path) -> Iterator[SlurmMachine]:
    machine = made(folder)
    yield machine
    machine.close()


class TestSlurm(MachineContract):
    """Jobs on nodes."""

    @pytest.fixture
    def there(self, tmp_path: Path) -> Path:
        (tmp_path / "there").mkdir()
        return tmp_path / "there"


async def test_a_refused_job_shows_the_tools_words(folder: Path) -> None:
    """What sbatch says against a partition is the reason."""
    with pytest.raises(MachineError, match=r"cluster: sbatch refused the job: .*invalid partition"):
        await made(folder, "--partition=none").run(("true",), 5)


async def test_a_job_whose_node_dies_is_the_worlds_fault(machine: SlurmMachine) -> None:
    """A job that leaves the queue without an answer is no result."""
    code = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    with pytest.raises(MachineError, match="ended without an answer"):
        await machine.run((sys.executable, "-c", code), 10)
