"""Rows 50 to 56 and 60 of the catalogue on every rung that this machine offers."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from data.errors import MachineError
from data.records import RunStatus
from targets.remote import seccomp
from targets.remote.ladder import Rung
from targets.remote.output import SideFault
from targets.remote.seccomp import DENIED
from targets.remote.side import Side
from targets.remote.strays import ROOM
from tests.targets.rig import Rig

TOKEN = "kforge-canary-2718"
DOUBLE = """
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2.0
"""
CALLED = """
import ctypes, os, signal, sys, time, torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""


@pytest.fixture(scope="module", params=list(Rung), ids=str)
def held(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """A judge that has this rung alone; a machine without it skips with the reason."""
    cache = request.config.cache
    assert cache is not None
    os.environ["KFORGE_CASE_TOKEN"] = TOKEN
    try:
        rig = Rig(Path(cache.mkdir("judge")), rungs=(request.param,))
    except MachineError as error:
        pytest.skip(str(error))
    yield rig
    rig.zygote.close()
    del os.environ["KFORGE_CASE_TOKEN"]


@pytest.fixture(autouse=True)
def _an_honest_candidate_follows(held: Rig) -> Iterator[None]:
    """Nothing is left behind, and the next one is judged as if nothing had been."""
    yield
    assert not list(Path("/tmp").glob(f"{ROOM}*"))
    with held.side() as side:
        called(side, DOUBLE)
        value = side.read(side.call()[0])
    assert isinstance(value, torch.Tensor)
    assert value.tolist() == [2.0] * 4


def called(side: Side, source: str) -> None:
    side.load(source)
    side.construct([], {})
    side.inputs([[torch.ones(4)]])


def told(side: Side, body: str) -> str:
    """What the code prints while it is loaded."""
    with side:
        side.load(body + "\nclass ModelNew: pass\n")
    return side.child.log()


ENDS = {
    "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); exec('while True: pass')": (
        RunStatus.TIMED_OUT
    ),
    "ctypes.string_at(8)": RunStatus.CRASHED,
    "os.abort()": RunStatus.CRASHED,
    "sys.setrecursionlimit(1 << 30); f = lambda y: list(map(f, [y])); f(x)": RunStatus.CRASHED,
    "x = [torch.ones(16 << 20) for _ in range(32)]": RunStatus.OUT_OF_MEMORY,
}


@pytest.mark.parametrize("body", ENDS, ids=["hang", "segfault", "abort", "recursion", "memory"])
def test_an_end_has_its_name(held: Rig, body: str) -> None:
    """Rows 50, 51, 53: hang, crash and memory are told apart, whatever signals are blocked."""
    with held.side(call_s=1.0 if "while" in body else 30.0, memory_mib=400) as side:
        called(side, CALLED.format(body=body))
        with pytest.raises(SideFault) as fault:
            side.call()
    assert fault.value.fault.status is ENDS[body], fault.value.fault


def test_forks_are_bounded_and_gone(held: Rig) -> None:
    """Rows 54, 55: a bomb of daemons stays below the limit and ends with its child."""
    side = held.side()
    with side:
        side.load(
            "import os, time\n"
            "for _ in range(512):\n"
            "    try:\n"
            "        if os.fork() == 0: os.setsid(); time.sleep(600)\n"
            "    except OSError: break\n"
            "class ModelNew: pass"
        )
        inside = side.child.processes()
    assert 2 < len(inside) <= 64 + 4 * (os.cpu_count() or 1)
    assert not [p for p in inside if Path(f"/proc/{p}").exists()]


def test_output_and_files_are_bounded(held: Rig) -> None:
    """Row 54: a flood without a newline, escapes, and many small files."""
    side = held.side(tmpfs_mib=32)
    text = ""
    try:
        text = told(
            side,
            "import os\nos.write(1, b'\\x1b[2Jhead')\n"
            "for _ in range(512): os.write(1, b'x' * (1 << 16))\n"
            "try:\n"
            "    room = os.environ['TMPDIR']\n"
            "    for n in range(1 << 16): open(f'{room}/{n}', 'wb').write(b'y' * 8192)\n"
            "    print('ALL WRITTEN')\n"
            "except OSError as e: print('full', e.errno)\n",
        )
        assert text.startswith("[2Jhead")
        assert "full 28" in text
    except SideFault as fault:  # where no file system of its own is full
        assert not held.zygote.rung.namespaces
        assert "killed above 32 MiB" in str(fault)  # noqa: PT017
    assert len(text) < 1_100_000
    assert "\x1b" not in text


def test_nobody_outside_can_be_reached(held: Rig) -> None:
    """Rows 41, 55: neither signals nor procfs, secrets, sockets or the password file."""
    with subprocess.Popen(["sleep", "60"]) as victim:
        text = told(
            held.side(),
            f"""
import ctypes, glob, os, signal, socket
for name, call in dict(
    kill=lambda: os.kill({victim.pid}, signal.SIGKILL),
    judge=lambda: os.kill({os.getpid()}, signal.SIGTERM),
    shadow=lambda: open("/etc/shadow").read(),
    memory=lambda: open("/proc/{os.getpid()}/mem", "rb").read(1),
    inet=lambda: socket.create_connection(("127.0.0.1", 9), 1),
    datagram=lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    vsock=lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM),
    raw=lambda: socket.socket(socket.AF_UNIX).connect("/run/systemd/private"),
).items():
    try: call(); print("REACHED", name)
    except OSError as e: print(name, e.errno)
seen = repr(dict(os.environ))
for path in glob.glob("/proc/[0-9]*/environ"):
    try: seen += open(path, "rb").read().decode(errors="replace")
    except OSError: pass
print("SECRET" if {TOKEN!r} in seen else "clean")
print(open("/proc/self/status").read())
""",
        )
        assert victim.poll() is None
        victim.kill()
    if held.zygote.rung is Rung.PROCESS:
        text = text.replace("REACHED shadow", "")
    assert "REACHED" not in text
    assert "clean" in text
    assert "SECRET" not in text
    status = dict(line.split(":\t") for line in text.splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == 0
    assert int(status["CapBnd"], 16) == 0 or os.geteuid() != 0
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_the_real_user_is_nobody_elses(held: Rig) -> None:
    """Root's children are another user on the host, whatever they are called inside."""
    with held.side() as side:
        owner = Path(f"/proc/{side.child.pid}").stat().st_uid
    assert owner == side.child.user
    assert owner != 0 or not held.zygote.rung.namespaces


def test_the_ways_to_escape_are_refused(held: Rig) -> None:
    """No tracing, mounts, filters, keys, rings or new namespaces, by number or by libc."""
    column = seccomp._ARCHITECTURES[os.uname().machine][0]
    numbers = {name: pair[column] for name, pair in DENIED.items()}
    text = told(
        held.side(),
        f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, number in {numbers!r}.items():
    done = libc.syscall(number, 0, 0, 0, 0, 0, 0)
    if done != -1 or ctypes.get_errno() != 1: print("ALLOWED", name, ctypes.get_errno())
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000):
    done = libc.syscall({seccomp.CLONE[column]}, flag | 17, 0, 0, 0, 0)
    if done != -1: print("CLONED", flag)
if libc.syscall(435, 0, 0) != -1 or ctypes.get_errno() != 38: print("CLONED")
""",
    )
    assert not text


def test_the_next_candidate_finds_nothing_changed(held: Rig) -> None:
    """Row 60: torch, our code, compile caches and other kernels cannot be written or replaced."""
    kernels = held.folder / "kernels"
    kernels.mkdir(exist_ok=True)
    other, sacrifice = kernels / "other.so", held.folder / "inductor" / "sacrifice"
    for file in (other, sacrifice):
        file.write_text("not yours")
    text = told(
        held.side(),
        f"""
import os
for path in {[torch.__file__, seccomp.__file__, "/etc/ld.so.cache"]!r}:
    try: open(path, "r+b"); print("OPENED", path)
    except OSError: pass
for path in {[str(other), str(sacrifice)]!r}:
    for change in (
        lambda: open(path, "ab"), lambda: os.unlink(path),
        lambda: os.rename(path, path + "x"), lambda: open(os.path.dirname(path) + "/poison", "ab"),
        lambda: os.truncate(path, 0), lambda: open(path),
    ):
        try: change(); print("CHANGED", path)
        except OSError: pass
""",
    )
    for file in (other, sacrifice, *kernels.glob("poison"), *held.folder.glob("inductor/poison")):
        file.unlink(missing_ok=True)
    if held.zygote.rung is not Rung.PROCESS:  # it reads and writes what its user may
        assert not text


def test_what_waits_stands_still(held: Rig) -> None:
    """Threads and subprocesses use no processor while the other side is timed."""
    burn = "import subprocess, threading\nsubprocess.Popen(['sh', '-c', 'while :; do :; done'])\n"
    thread = "def f():\n    while True: pass\nthreading.Thread(target=f, daemon=True).start()\n"
    with held.side() as side:
        side.load(burn + thread + DOUBLE)
        side.freeze()
        before = side.child.cpu_ns()
        time.sleep(0.1)
        assert 0 < before == side.child.cpu_ns()
        side.thaw()
        time.sleep(0.05)
        assert side.child.cpu_ns() > before


def test_a_helper_cannot_wake_its_family(held: Rig) -> None:
    """A process that sends SIGCONT to the others all the time stands still with them."""
    wake = (
        "import os, signal, time\nparent = os.getpid()\n"
        "if os.fork() == 0:\n    while True:\n"
        "        try: os.kill(parent, signal.SIGCONT)\n        except OSError: pass\n"
    )
    with held.side() as side:
        side.load(wake + DOUBLE)
        side.freeze()
        before = side.child.cpu_ns()
        time.sleep(0.1)
        assert side.child.cpu_ns() == before
