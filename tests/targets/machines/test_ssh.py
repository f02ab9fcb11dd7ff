"""SSH machines on real hosts: the contract, who the host is, and what goes wrong on the way."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from targets.machines.remote import RemoteMachine
from targets.machines.ssh import ssh_machine
from tests.targets.machines.contract import MachineContract
from tests.targets.machines.hosts import Host

pytestmark = pytest.mark.net


@pytest.fixture(scope="module")
def machine(hosts: tuple[Host, ...]) -> Iterator[RemoteMachine]:
    machine = ssh_machine(hosts[0].destination(python=sys.executable), scope="tests")
    yield machine
    machine.close()


class TestSsh(MachineContract):
    """A host behind a cable."""

    @pytest.fixture
    def there(self, tmp_path: Path) -> Path:
        (tmp_path / "there").mkdir()
        return tmp_path / "there"
