"""The warm process that children are forked from: torch imported, nothing secret, nothing foreign.

Judge and warm process share a pair of sockets without a name; jobs that the judge forks inherit its
end. A request is one end of a new pair: whoever reads it in the warm process becomes the keeper of
one child (`warm.py`). All end with the judge.
"""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data.errors import MachineError
from targets.remote import bubblewrap, inherited, ladder, sandbox, strays, users
from targets.remote.bubblewrap import Inside
from targets.remote.cgroup import sweep
from targets.remote.channel import Channel, ChannelError, introduced_pair, sender
from targets.remote.drain import Drain
from targets.remote.ladder import Rung, accepted, refusal
from targets.remote.offspring import GONE_S, Birth, Child
from targets.remote.sandbox import Limits, View

START_S = 180.0
"""A cold dummy compile takes 17 s on an idle machine."""
PROBE_S = 20.0
"""The rungs are tried before torch is imported: 0.2 s on an idle machine."""
WARM = "warm"
"""Folder in the cache for what the warm-up leaves, such as inductor's precompiled header."""
CODE = Path(__file__).resolve().parents[2]
"""The checkout, or the archive that was shipped."""


class Zygote:
    """The judge's side of the warm process; usable from forked job processes too."""

    def __init__(self, cache: Path, *, rungs: Sequence[Rung] = ()) -> None:
        """Without `rungs` those that are accepted here. Raises MachineError where none holds."""
        self.cache = cache
        self._owner = os.getpid()
        self._handle: int | None = None
        self._rungs = tuple(rungs) or accepted(os.environ.get(ladder.OPTION))
        sweep()
        inherited.sweep(self.cache)
        strays.sweep()
        self._own_caches()
        if not self._started_in_bubblewrap():
            self._start((), [r for r in self._rungs if r is not Rung.BUBBLEWRAP], os.getpid())

    def _own_caches(self) -> None:
        """What baselines compile is theirs: neither the judge's nor a candidate's."""
        baseline = users.spare(trusted=True)
        for folder in (self.cache / "inductor", self.cache / WARM):
            folder.mkdir(parents=True, exist_ok=True)
            if baseline is not None:
                users.own(folder, baseline.uid)
        if baseline is not None:  # who made the folder may have a strict umask
            self.cache.chmod(self.cache.stat().st_mode | 0o011)

    def _started_in_bubblewrap(self) -> bool:
        program = bubblewrap.found()
        if Rung.BUBBLEWRAP not in self._rungs or program is None:
            return False
        writable = (str(self.cache / "inductor"), str(self.cache / WARM))
        code = (str(CODE),) if CODE.is_file() else (str(CODE / "targets"), str(CODE / "data"))
        inside = Inside(readable=(*code, str(self.cache)), writable=writable)
        prefix = bubblewrap.command(program, inside, users.spare(trusted=True))
        try:
            self._start(prefix, [Rung.BUBBLEWRAP], 0)
        except MachineError as error:
            if self._rungs == (Rung.BUBBLEWRAP,):
                raise
            print(f"bubblewrap is here but of no use: {error}", file=sys.stderr, flush=True)
            return False
        return True

    def _start(self, prefix: Sequence[str], rungs: Sequence[Rung], parent: int) -> None:
        """Starts the warm process, which says first which rung holds. Raises MachineError."""
        mine, theirs = introduced_pair(socket.SOCK_SEQPACKET)
        arguments = (str(theirs.fileno()), str(parent), ",".join(rungs))
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "targets.remote.warm", *arguments],
            env={
                **sandbox.environment(self.cache / "inductor"),
                "TMPDIR": str(self.cache / WARM),
                "PYTHONPATH": str(CODE),
            },
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno() if _has_fileno() else subprocess.DEVNULL,
        )
        theirs.close()
        self._requests = mine
        told: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError, ChannelError):
            self._handle = os.pidfd_open(sender(mine, time.monotonic() + PROBE_S))
            told = json.loads(mine.recv(1 << 16))
        if not told.get("rung"):
            self.close()
            why = "; ".join(told.get("faults", ["it did not start"]))
            raise MachineError(f"{refusal(self._rungs)} ({why[-400:]})")
        self.rung = Rung(told["rung"])

    def child(self, limits: Limits, view: View | None = None) -> Child:
        """A fresh child behind its walls, ready for its first message. Raises MachineError."""
        asking, asked = introduced_pair()
        mine, theirs = introduced_pair()
        reading, writing = os.pipe()
        control, deadline = Channel(asking), time.monotonic() + START_S
        wanted = {"limits": asdict(limits), "view": asdict(view or View())}
        try:
            socket.send_fds(self._requests, [b"r"], [asked.fileno()])
            asked.close()
            control.send(wanted, fds=(theirs.fileno(), writing))
            theirs.close()
            keeper = sender(asking, deadline)
            born = control.receive(deadline).header
            pid = sender(mine, deadline)
        except (ChannelError, OSError) as error:
            raise MachineError(f"the judge's warm process made no child ({error})") from error
        finally:
            for end in (asked, theirs):
                end.close()
            os.close(writing)
        birth = Birth(
            pid=pid, keeper=keeper, rung=Rung(born["rung"]), user=born["user"], room=born["room"]
        )
        child = Child(birth, Channel(mine), control)
        child.admit(limits, Drain(reading))
        return child

    def close(self) -> None:
        """Ends the warm process and all that it has forked; returns when they are gone."""
        self._requests.close()
        if os.getpid() == self._owner:
            self._process.kill()
            self._process.wait()
            if self._handle is not None:
                select.select([self._handle], [], [], GONE_S)
                os.close(self._handle)
                self._handle = None


def _has_fileno() -> bool:
    try:
        return sys.stderr.fileno() >= 0
    except (OSError, ValueError, AttributeError):
        return False
