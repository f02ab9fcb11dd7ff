"""What every machine must do, whatever carries it: one suite, inherited by a class a transport."""

import asyncio
import signal
import time
from pathlib import Path, PurePath

import pytest

from data.errors import MachineError
from targets.machines.base import Machine
from targets.remote.offshoots import born

PYTHON = "python3"
LOUD = """
import os, threading
def shout(fd, byte):
    chunk, left = byte * (1 << 16), 100_000_000
    while left > 0:
        left -= os.write(fd, chunk[:left])
    os.write(fd, b"END")
other = threading.Thread(target=shout, args=(2, b"e"))
other.start()
shout(1, b"o")
other.join()
"""
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
inner = subprocess.Popen(["sleep", "4321"])
apart = subprocess.Popen(["sleep", "4322"], start_new_session=True)
open(sys.argv[1], "w").write(f"{os.getpid()} {inner.pid} {apart.pid} ")
time.sleep(4323)
"""
SLACK_S = 5.0
"""How much later than the deadline anything may end."""


class MachineContract:
    """Inherit and give `machine`, and `there`: its empty folder, which this host can look into."""

    async def test_bytes_survive_the_round_trip(
        self, machine: Machine, there: Path, tmp_path: Path
    ) -> None:
        """What was put is got back, byte for byte, in folders that were not there."""
        content = bytes(range(256)) * 20_000
        (tmp_path / "here").write_bytes(content)
        await machine.put(tmp_path / "here", there / "deep" / "there")
        await machine.get(there / "deep" / "there", tmp_path / "back" / "here")
        assert (tmp_path / "back" / "here").read_bytes() == content

    @pytest.mark.parametrize(
        "name", ["with space", "quote'\"$HOME`x`", "-rf", "new\nline", "ünï-漢字", "semi;colon&|*"]
    )
    async def test_odd_names_are_names(
        self, machine: Machine, there: Path, tmp_path: Path, name: str
    ) -> None:
        """No shell reads a file's name or an argument."""
        (tmp_path / "here").write_bytes(b"content")
        await machine.put(tmp_path / "here", there / name)
        done = await machine.run((PYTHON, "-c", "import sys; print(ascii(sys.argv[1]))", name), 30)
        assert done.out.decode().strip() == ascii(name)
        await machine.get(there / name, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b"content"

    async def test_an_empty_file_travels(
        self, machine: Machine, there: Path, tmp_path: Path
    ) -> None:
        """No bytes are a content too."""
        (tmp_path / "here").write_bytes(b"")
        await machine.put(tmp_path / "here", there / "empty")
        await machine.get(there / "empty", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b""

    async def test_a_missing_file_is_the_worlds_fault(
        self, machine: Machine, there: Path, tmp_path: Path
    ) -> None:
        """A file that cannot be copied raises and names it."""
        with pytest.raises(MachineError, match=r"nothing.*No such file"):
            await machine.get(there / "nothing", tmp_path / "here")

    async def test_exit_status_and_both_streams_are_values(self, machine: Machine) -> None:
        """A command that fails is no exception; its bytes come as they are."""
        code = "import os; os.write(1, bytes(range(256))); os.write(2, b'err'); os._exit(3)"
        done = await machine.run((PYTHON, "-c", code), 30.0)
        assert (done.code, done.err, done.timed_out) == (3, b"err", False)
        assert done.out == bytes(range(256))

    async def test_a_signal_is_a_value(self, machine: Machine) -> None:
        """A command that a signal ended has the signal's negative number."""
        done = await machine.run((PYTHON, "-c", "import os; os.kill(os.getpid(), 11)"), 30.0)
        assert done.code == -signal.SIGSEGV

    async def test_a_command_that_is_not_there_is_the_worlds_fault(self, machine: Machine) -> None:
        """A missing tool raises and names it."""
        with pytest.raises(MachineError, match="cannot run 'no-such-tool'"):
            await machine.run(("no-such-tool",), 30.0)

    async def test_100_mb_on_both_streams_at_once(self, machine: Machine) -> None:
        """Neither stream blocks the other; head and tail are kept, the middle is counted."""
        done = await machine.run((PYTHON, "-c", LOUD), 120.0)
        assert done.code == 0
        for text, letter in ((done.out, b"o"), (done.err, b"e")):
            assert text.startswith(letter * 1000)
            assert text.endswith(letter * 1000 + b"END")
            assert b"97902851 bytes left out" in text
            assert len(text) < 3 << 20

    async def test_the_deadline_ends_what_ignores_sigterm(
        self, machine: Machine, there: Path
    ) -> None:
        """The whole group is gone, and what had left it, within the deadline and a little."""
        started = time.monotonic()
        done = await machine.run((PYTHON, "-c", STUBBORN, str(there / "pids")), 2.0)
        assert done.timed_out
        assert done.code == -signal.SIGKILL
        assert time.monotonic() - started < 2.0 + SLACK_S
        assert not _living(there / "pids")

    async def test_cancelling_ends_the_whole_group(self, machine: Machine, there: Path) -> None:
        """When the caller is cancelled nothing goes on there; the cancellation is not swallowed."""
        running = asyncio.ensure_future(
            machine.run((PYTHON, "-c", STUBBORN, str(there / "cancelled")), 60.0)
        )
        await asyncio.to_thread(_wait_for_three, there / "cancelled")
        assert len(_living(there / "cancelled")) == 3
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, SLACK_S)
        assert not _living(there / "cancelled")

    async def test_commands_run_side_by_side(self, machine: Machine) -> None:
        """Twenty commands of a second do not queue, and each gets its own answer."""
        started = time.monotonic()
        code = "import sys, time; time.sleep(1); print(sys.argv[1])"
        ran = await asyncio.gather(
            *(machine.run((PYTHON, "-c", code, str(n)), 60.0) for n in range(20))
        )
        assert [int(done.out) for done in ran] == list(range(20))
        assert time.monotonic() - started < 15.0

    def test_a_machine_serves_several_event_loops(self, machine: Machine) -> None:
        """Flows may run their tasks in several loops, one after the other."""
        for _ in range(2):
            assert asyncio.run(machine.run((PYTHON, "-c", "print(1)"), 30.0)).out == b"1\n"

    async def test_secrets_stay_here(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No key of the controller is in a command's environment."""
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
        code = "import os; print(dict(os.environ))"
        done = await machine.run((PYTHON, "-c", code), 30.0)
        assert b"very-secret" not in done.out


def _wait_for_three(path: Path) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until and (not path.exists() or len(_pids(path)) < 3):
        time.sleep(0.05)


def _pids(path: PurePath) -> list[int]:
    return [int(word) for word in Path(path).read_text().split()]


def _living(path: PurePath) -> list[int]:
    return [pid for pid in _pids(path) if born(pid)]
