"""Files on their way to a host whose link breaks, or that are given up."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from data.errors import MachineError
from targets.machines import resident
from targets.machines.exchange import PART
from targets.machines.uploads import Part, Uploads
from tests.targets.machines.near import Near, near


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Near]:
    async with near(tmp_path / "host") as made:
        yield made


@pytest.mark.parametrize("size", [0, 1, PART, PART + 1, 3 * PART, 3 * PART + 7])
@pytest.mark.parametrize("cut", [b'"last": false', b'"last": true', b'"offset": 1048576'])
async def test_a_part_that_is_sent_twice_is_written_once(
    host: Near, tmp_path: Path, size: int, cut: bytes
) -> None:
    """The answer to any part may be lost with the link: the file is whole all the same."""
    content = os.urandom(size)
    (tmp_path / "here").write_bytes(content)
    machine = host.controller(cut)
    await machine.put(tmp_path / "here", tmp_path / "there" / "file")
    assert (tmp_path / "there" / "file").read_bytes() == content
    assert [p.name for p in (tmp_path / "there").iterdir()] == ["file"]
    await machine.get(tmp_path / "there" / "file", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content


async def test_what_was_given_up_midway_is_cleared_away(
    host: Near, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed controller leaves no half of a file on the host."""
    monkeypatch.setattr(resident, "ABSENT_S", 0.3)
    args = {"path": str(tmp_path / "file"), "part": "x", "offset": 0, "data": "aGFsZg=="}
    await host.controller().link.ask("put", {**args, "last": False}, 5)
    assert (tmp_path / ".kforge-x").read_bytes() == b"half"
    await host.close()
    async with asyncio.timeout(10):
        while (tmp_path / ".kforge-x").exists():
            await asyncio.sleep(0.1)


async def test_a_part_without_those_before_it_is_refused(tmp_path: Path) -> None:
    """A host that was started anew in the midst of an upload makes no file with a hole."""
    late = Part(path=tmp_path / "file", name="x", offset=5, data=b"late", last=True)
    with pytest.raises(MachineError, match=r"cannot write .*file: No such file"):
        await Uploads().take(late)
    assert not list(tmp_path.iterdir())
