"""What children are forked from: `python -m targets.remote.warm FD` serves its judge."""

import contextlib
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from targets.remote import sandbox
from targets.remote.channel import Channel, ChannelError, close_all_but
from targets.remote.processes import descendants, send
from targets.remote.sandbox import Limits, View


def main(fd: int, judge: int) -> None:
    """The warm process: imports, then one keeper for each connection until its parent dies."""
    listener = socket.socket(fileno=fd)
    signal.signal(signal.SIGTERM, lambda *_: _leave(listener))
    sandbox.die_with_parent(judge, number=signal.SIGTERM)
    drive = _warm_up()
    rung = _probe()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        zygote = os.getpid()
        if os.fork() == 0:
            sandbox.die_with_parent(zygote)
            _keep(connection, rung, drive)
        connection.close()


def _leave(listener: socket.socket) -> None:
    """The judge is gone: so is its folder."""
    shutil.rmtree(os.path.dirname(listener.getsockname()), ignore_errors=True)  # noqa: PTH120
    os._exit(0)


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
    from targets.remote import child, kforge_launch, policy  # noqa: F401
    from targets.remote.accelerator import present

    torch.set_num_threads(1)
    if present():  # the compiler asks for the device, and no fork of who has asked can use it
        _in_fork(compile_once)
        from targets.remote import cuda  # noqa: F401

        with contextlib.suppress(ImportError):  # comes with torch, where there is a device
            importlib.import_module("triton")
    else:
        compile_once()
    sys.modules["kforge_launch"] = kforge_launch
    root = os.environ.pop("PYTHONPATH", "")
    sys.path[:] = [p for p in sys.path if p not in ("", root)]
    gc.freeze()
    return child.drive


def _in_fork(action: Callable[[], None]) -> None:
    """What it leaves on disk stays, what it does to this process does not."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _probe() -> str:
    """The best rung on which a child can really be shut in here."""
    pid = os.fork()
    if pid == 0:
        try:
            sandbox.unshare()
            inner = os.fork()
            if inner == 0:
                limits = Limits(memory_bytes=1 << 30, seconds=10.0)
                _enclose_or_exit(sandbox.UNSHARE, limits, View())
                os._exit(0)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) & 1)
        except OSError:
            os._exit(1)
    done = os.waitpid(pid, 0)[1]
    return sandbox.UNSHARE if done == 0 else sandbox.PROCESS


def _enclose_or_exit(rung: str, limits: Limits, view: View) -> None:
    try:
        sandbox.enclose(rung, limits, view)
    except OSError as error:
        print(f"sandbox: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def _keep(connection: socket.socket, rung: str, drive: Callable[[Channel], None]) -> None:
    """The keeper's whole life; never returns."""
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    control = Channel(connection, takes_fds=True)
    try:
        frame = control.receive(time.monotonic() + 30.0)
        if rung == sandbox.UNSHARE:
            sandbox.unshare()
        sandbox.adopt_orphans()
        pid = os.fork()
        if pid == 0:
            _live(frame.header, frame.fds, rung, drive)
        for fd in frame.fds:
            os.close(fd)
        control.send({"pid": pid, "rung": rung})
        status = _wait(pid, connection)
        _reap()
        control.send({"status": status})
    except (ChannelError, OSError) as error:
        print(f"keeper: {error}", file=sys.stderr, flush=True)
    os._exit(0)


def _live(
    asked: dict[str, Any], fds: tuple[int, ...], rung: str, drive: Callable[[Channel], None]
) -> None:
    """The child: walls first, then the driver; never returns."""
    try:
        sandbox.die_with_parent(0 if rung == sandbox.UNSHARE else os.getppid())
        channel_fd, output = fds
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        close_all_but((0, 1, 2, channel_fd))
        channel = Channel(socket.socket(fileno=channel_fd), takes_fds=True)
        channel.receive()
        limits = Limits(memory_bytes=0, seconds=asked["seconds"], tmpfs_bytes=asked["tmpfs"])
        seen = View(**{k: tuple(v) for k, v in asked["view"].items()})
        _enclose_or_exit(rung, limits, seen)
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


def _reap() -> None:
    """Kills descendants that outlived the child until none is left."""
    me = os.getpid()
    while True:
        for pid in descendants(me)[1:]:
            send(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
