"""What children are forked from: `python -m targets.remote.warm FD RUNGS` serves its judge.

It tries the rungs, says which one holds, imports torch, and then makes a keeper for each request.
A keeper makes the walls, forks the child, reports how it ended and kills it when the judge hangs
up. The warm process never runs foreign code; it ends when no judge holds the other end of its
socket.
"""

import contextlib
import gc
import importlib
import json
import os
import platform
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from targets.remote import sandbox, users
from targets.remote.channel import Channel, ChannelError, close_all_but
from targets.remote.ladder import Rung
from targets.remote.processes import reap, send
from targets.remote.sandbox import Limits, View, Walls, whom
from targets.remote.strays import ROOM

COMPILER = (
    "torch._dynamo.backends.inductor",
    "torch._dynamo.repro.after_dynamo",
    "torch._export.db.logging",
    "torch.export._trace",
    "torch.export._unlift",
    "torch._inductor.codegen.cpp_wrapper_cpu_array_ref",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.cpp_wrapper_mps",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.codegen.halide",
    "torch._inductor.codegen.pallas",
    "torch._inductor.codegen.python_wrapper_mtia",
    "torch._inductor.codegen.wrapper_fxir",
    "torch._inductor.fx_passes.efficient_conv_bn_eval",
    "torch._inductor.fx_passes.quantization",
    "torch._subclasses.schema_check_mode",
    "triton.tools.tensor_descriptor",
)
"""What torch.compile imports late; not all of it is in every version of torch."""
PROBE = Limits(memory_bytes=1 << 30, seconds=10.0, tmpfs_bytes=1 << 20)


def main(fd: int, parent: int, rungs: Sequence[Rung]) -> None:
    """The warm process: the rung or why there is none, imports, then requests until the end."""
    requests = socket.socket(fileno=fd)
    os.umask(0o022)
    if parent:
        sandbox.die_with_parent(parent)
    requests.send(b"w")
    faults: list[str] = []
    rung = next((r for r in rungs if _holds(r, faults)), None)
    requests.send(json.dumps({"rung": rung, "faults": faults}).encode()[:60_000])
    if rung is None:
        return
    drive = _warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, fds, _, _ = socket.recv_fds(requests, 1, 1)
        if not data:
            return
        zygote = os.getpid()
        if os.fork() == 0:
            requests.close()
            sandbox.die_with_parent(zygote)
            _keep(socket.socket(fileno=fds[0]), zygote, rung, drive)
        os.close(fds[0])


def _warm_up() -> Callable[[Channel], None]:
    """Imports and compiles with one thread: a fork after an OpenMP region would hang."""
    import torch
    import torch._inductor.codecache
    import torch._inductor.compile_fx
    from torch import compiler

    def compile_once() -> None:
        with contextlib.suppress(Exception):  # no compiler here: eager baselines only
            torch.compile(lambda x: torch.relu(x) + 1.0, dynamic=False)(torch.ones(64))
            compiler.reset()

    # A child cannot import: policy must be here.
    from targets.remote import child, fence, kforge_launch, policy  # noqa: F401
    from targets.remote.accelerator import present

    torch.set_num_threads(1)
    _try_vectors()
    if present():  # the compiler asks for the device, and no fork of who has asked can use it
        _in_fork(compile_once)
        from targets.remote import cuda  # noqa: F401

        with contextlib.suppress(ImportError):  # comes with torch, where there is a device
            importlib.import_module("triton")
            _know_the_compiler()
    else:
        compile_once()
    baseline = users.spare(trusted=True)
    if baseline is not None:  # what was compiled now belongs to those who go on with it
        users.own(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]), baseline.uid)
    sys.modules["kforge_launch"] = kforge_launch
    code = os.environ.pop("PYTHONPATH", "")
    sys.path[:] = [p for p in sys.path if p not in ("", code)]
    gc.freeze()
    return child.drive


def _know_the_compiler() -> None:
    """What torch.compile finds out in each process: 0.8 of the 1.0 s of its first call."""
    from torch._inductor import codecache

    for name in COMPILER:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    codecache.torch_key()  # hashes of all files of torch and triton, kept in the process
    with contextlib.suppress(ImportError):
        from torch._inductor.runtime.triton_compat import triton_key

        triton_key()


def _try_vectors() -> None:
    """Each vector extension's trial compile in a process of its own; inductor's cache keeps them.

    In turn, as inductor tries them, they are 12 of the 22 s that a cold start compiles.
    """
    from torch._inductor.cpu_vec_isa import supported_vec_isa_list, x86_isa_checker

    here = x86_isa_checker() if platform.machine() == "x86_64" else []
    for isa in supported_vec_isa_list[1:]:  # the first one is the compiler's own turn
        if all(flag in here for flag in str(isa).split()):
            _in_fork(isa.__bool__)


def _in_fork(action: Callable[[], object]) -> None:
    """What it leaves on disk stays, what it does to this process does not; nobody waits for it.

    So its files must belong to baselines from the beginning.
    """
    warm, baseline = os.getpid(), users.spare(trusted=True)
    if os.fork() == 0:
        try:
            if baseline is not None:
                users.become(baseline)
            sandbox.die_with_parent(warm)
            action()
        finally:
            os._exit(0)


def _holds(rung: Rung, faults: list[str]) -> bool:
    """Whether a child can really be shut in so; the reason goes to the list."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with _room(rung) as room:
                walls = Walls(rung, PROBE, View(room=room), whom(rung, trusted=False))
                walls.separate()
                inner = os.fork()
                if inner == 0:
                    walls.enclose()
                    os._exit(0)
                code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
        except OSError as error:
            os.write(writing, f"{rung}: {error}".encode())
        finally:
            os._exit(code)
    os.close(writing)
    fault = os.read(reading, 4096).decode(errors="replace")
    os.close(reading)
    held = os.waitpid(pid, 0)[1] == 0
    if not held:
        faults.append(fault or f"{rung}: the child died")
    return held


@contextlib.contextmanager
def _room(rung: Rung) -> Any:
    """A private folder on rungs without file systems of their own; empty text on the others."""
    if rung.namespaces:
        yield ""
        return
    room = tempfile.mkdtemp(prefix=f"{ROOM}{os.getpid()}-", dir=_base())
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _base() -> str:
    """Where a folder can be reached by every user."""
    return "/tmp" if os.access("/tmp", os.W_OK) else tempfile.gettempdir()  # noqa: S108


def _keep(
    connection: socket.socket, zygote: int, rung: Rung, drive: Callable[[Channel], None]
) -> None:
    """The keeper's whole life; never returns."""
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    control = Channel(connection, takes_fds=True)
    try:
        with _room(rung) as room:
            frame = control.receive(time.monotonic() + 30.0)
            walls, user = _walls(rung, frame.header, room)
            connection.send(b"k")
            walls.separate()
            sandbox.die_with_parent(zygote)
            sandbox.adopt_orphans()
            pid = os.fork()
            if pid == 0:
                _live(walls, frame.fds, drive)
            for fd in frame.fds:
                os.close(fd)
            control.send({"rung": rung, "user": user, "room": room})
            status = _wait(pid, connection)
            reap()
        control.send({"status": status})
    except (ChannelError, OSError) as error:
        print(f"keeper: {error}", file=sys.stderr, flush=True)
    os._exit(0)


def _walls(rung: Rung, asked: dict[str, Any], room: str) -> tuple[Walls, int]:
    """The walls, and whom the child will be on this host."""
    seen: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in {**asked["view"], "room": room}.items()
    }
    view = View(**seen)
    user = whom(rung, trusted=bool(view.writable))
    if room and user is not None:
        os.chown(room, user.uid, user.uid)
    return Walls(rung, Limits(**asked["limits"]), view, user), user.uid if user else os.getuid()


def _live(walls: Walls, fds: tuple[int, ...], drive: Callable[[Channel], None]) -> None:
    """The child: waits for its limits, then walls, then the driver; never returns."""
    try:
        parent = os.getppid()
        sandbox.die_with_parent(parent)
        channel_fd, output = fds
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        close_all_but((0, 1, 2, channel_fd, *walls.descriptors))
        channel = Channel(socket.socket(fileno=channel_fd), takes_fds=True)
        channel.socket.send(b"c")
        channel.receive()
        walls.enclose()
        sandbox.die_with_parent(parent)
        os.environ.update({"TMPDIR": walls.place, "HOME": walls.place})
        channel.send({"ok": True})
        drive(channel)
    except ChannelError:
        pass  # the judge hung up
    except BaseException as error:  # noqa: BLE001 (the process edge)
        print(f"child: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(97)


def _wait(pid: int, connection: socket.socket) -> int:
    """Wait status of the child, which is killed when the judge hangs up."""
    handle = os.pidfd_open(pid)
    watched: list[Any] = [handle, connection]
    ready, _, _ = select.select(watched, [], [])
    if handle not in ready:
        send(pid, signal.SIGKILL)
    os.close(handle)
    return os.waitpid(pid, 0)[1]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), [Rung(r) for r in sys.argv[3].split(",")])
