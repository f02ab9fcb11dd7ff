"""The record of a server: only the process that was started counts, and its failure is told."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import LedgerError, MachineError
from flows import server
from tasks import served
from tasks.served import Server

GHOST = Server(pid=2**22 + 1, born="1", port=9, database="d", log="l")


def test_a_record_comes_back_whole(tmp_path: Path) -> None:
    """Pid, port and database lie under RUNS/.prefect."""
    served.record(tmp_path, GHOST)
    assert served.recorded(tmp_path) == GHOST
    assert [f.name for f in (tmp_path / ".prefect").iterdir()] == ["server.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', "null"])
def test_a_damaged_record_is_no_server(text: str, tmp_path: Path) -> None:
    """A record cut off by a full disk leads to a new server, not to a crash."""
    served.folder(tmp_path)
    (tmp_path / ".prefect" / "server.json").write_text(text)
    assert served.recorded(tmp_path) is None
    assert server.stop(tmp_path) is None


def test_a_reused_pid_is_not_killed(tmp_path: Path) -> None:
    """A pid that belongs to somebody else by now is left alone."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        served.record(tmp_path, replace(GHOST, pid=other.pid))
        assert server.stop(tmp_path) is None
        assert other.poll() is None
        other.communicate(b"\n")
    assert served.recorded(tmp_path) is None


def test_this_process_is_alive_and_a_ghost_is_not() -> None:
    """Identity is pid and birth together."""
    born = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    assert server.alive(replace(GHOST, pid=os.getpid(), born=born))
    assert not server.alive(replace(GHOST, pid=os.getpid(), born="1"))
    assert not server.alive(GHOST)


def test_what_is_no_server_is_not_healthy() -> None:
    """Nothing listens, or the address is none."""
    assert not served.healthy("http://127.0.0.1:9/api", timeout_s=1)
    assert not served.healthy("file:///etc/passwd")
    assert not served.healthy("nonsense")


def test_a_given_address_that_is_dead_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With PREFECT_API_URL set the user's server counts, and no other."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with pytest.raises(MachineError, match=r"PREFECT_API_URL=http://127\.0\.0\.1:9/api"):
        server.ensure(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_not_shown() -> None:
    """The address in messages has no user and no password."""
    assert server.public("https://u:p@host/api") == "https://host/api"


def test_an_unwritable_folder_is_said(tmp_path: Path) -> None:
    """A file where the ledger should be."""
    (tmp_path / "runs").write_text("")
    with pytest.raises(LedgerError, match="--runs"):
        served.folder(tmp_path / "runs")
