"""One link to the host's resident: stdin and stdout, for whatever carries them.

`python -m targets.machines.attach ROOT` starts the resident unless it runs, then only copies bytes.
It ends with the link, and when a controller that was cut off has been silent.
"""

import contextlib
import fcntl
import hashlib
import os
import select
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

from targets.remote.command import public_environment

CODE = Path(__file__).resolve().parents[2]
CHUNK = 1 << 16
SILENT_S = 60.0
START_S = 20.0


def meeting_point(root: Path) -> Path:
    """The socket of the resident for this root and this code; in /tmp, since its path is short."""
    folder = Path(f"/tmp/kforge-{os.getuid()}")  # noqa: S108 (ours alone, checked)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        raise OSError(f"{folder} belongs to somebody else; have it removed")
    return folder / f"{_short(str(root.resolve()))}-{_short(str(CODE))}.sock"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def connected(root: Path) -> socket.socket:
    """A connection to the resident, which is started when it is not there. OSError."""
    place = meeting_point(root)
    with contextlib.suppress(OSError):
        return _connect(place)
    with place.with_suffix(".starting").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):
            return _connect(place)
        process = _start(root, place)
        until = time.monotonic() + START_S
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(OSError):
                return _connect(place)
            time.sleep(0.01)
        raise OSError(f"the resident did not start; see {root / 'resident.log'}")


def copy(link: socket.socket) -> None:
    """Carries bytes both ways until one side ends or the controller is silent."""
    ends: tuple[int, int] = (0, link.fileno())
    heard = time.monotonic()
    while time.monotonic() - heard < SILENT_S:
        readable, _, _ = select.select(ends, [], [], 1.0)
        for source in readable:
            data = os.read(0, CHUNK) if source == 0 else link.recv(CHUNK)
            if not data:
                return
            if source == 0:
                heard = time.monotonic()
                link.sendall(data)
            else:
                _write(data)


def main(root: Path) -> None:
    """The process itself; a fault is a line of JSON, as all answers are."""
    try:
        link = connected(root)
    except OSError as error:
        _write(b'{"fatal": "%s"}\n' % str(error).replace('"', "'").encode())
        sys.exit(1)
    _write(b'{"attached": true}\n')
    with contextlib.suppress(OSError):
        copy(link)


def _connect(place: Path) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(str(place))
    except OSError:
        link.close()
        raise
    return link


def _start(root: Path, place: Path) -> subprocess.Popen[bytes]:
    """The resident, in a session of its own: it outlives the link."""
    place.unlink(missing_ok=True)
    with (root / "resident.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "targets.machines.resident", str(root), str(place)],
            cwd=CODE,
            env={**public_environment(), "PYTHONPATH": str(CODE)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
