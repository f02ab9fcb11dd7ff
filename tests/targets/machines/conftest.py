"""Three SSH hosts for the tests that are marked `net`."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.targets.machines.hosts import Host, missing


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, ...]]:
    """Each in a network namespace of its own, with its own sshd and keys."""
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("hosts")
    key = folder / "id_ed25519"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=60
    )
    made = [Host(folder / f"host{n}", n, Path(key)) for n in range(3)]
    try:
        for host in made:
            host.up()
            host.trust()
        yield tuple(made)
    finally:
        for host in made:
            host.down()
