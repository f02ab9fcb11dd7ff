"""A machine behind SSH: paramiko carries the bytes, the host's resident does the jobs.

Every step has our own deadline: a host that accepts and never answers costs no more than that.
"""

import json
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import paramiko

from data.errors import MachineError
from targets.machines import archive, boot
from targets.machines.remote import RemoteMachine
from targets.machines.ssh_hosts import Hop, check, known_keys, preferred, route
from targets.machines.stream import CHUNK, Lines
from targets.machines.tunnel import Tunnel

KEEPALIVE_S = 5
CLEAN_S = 60.0
WINDOW = 1 << 21
T = TypeVar("T")

logging.getLogger("kforge.paramiko").setLevel(logging.CRITICAL)
"""It prints tracebacks of what we report in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """What a person configures of an SSH machine."""

    name: str
    host: str
    """`[user@]host[:port]` or an alias of `~/.ssh/config`."""
    python: str = "python3"
    root: str = "~/.kforge"
    config: Path | None = None


class Channel:
    """An SSH channel as a stream."""

    def __init__(self, channel: paramiko.Channel, connections: list[paramiko.Transport]) -> None:
        self._channel, self._connections = channel, connections
        self.said: dict[str, object] = {}
        """Our code's first words on the host."""

    def read(self, timeout_s: float) -> bytes:
        """What is there; what the host says on stderr is not for us."""
        self._channel.settimeout(timeout_s)
        while self._channel.recv_stderr_ready():
            self._channel.recv_stderr(CHUNK)
        try:
            return bytes(self._channel.recv(CHUNK))
        except TimeoutError:
            raise TimeoutError from None

    def write(self, data: bytes) -> None:
        """All of it."""
        view = memoryview(data)
        while view:
            try:
                view = view[self._channel.send(view[:CHUNK]) :]
            except TimeoutError:
                if self._channel.closed:
                    raise OSError("the channel is closed") from None

    def close(self) -> None:
        """Ends the connection with all its hops."""
        for connection in reversed(self._connections):
            connection.close()


@dataclass(slots=True)
class Attempt:
    """A connection in the making: what has to be closed, and what it is at."""

    stage: str = "looking up the host"
    sockets: list[socket.socket] = field(default_factory=list)
    connections: list[paramiko.Transport] = field(default_factory=list)
    over: bool = False

    def add(self, sock: socket.socket) -> None:
        """Keeps what has to be closed. OSError when the attempt was given up meanwhile."""
        self.sockets.append(sock)
        if self.over:
            sock.close()
            raise OSError("the attempt was given up")

    def complaint(self) -> str:
        """What a command that should lead to the host said of itself."""
        return " ".join(s.said() for s in self.sockets if isinstance(s, Tunnel))

    def close(self) -> None:
        """Ends everything; whoever waits for it in another thread gets an error."""
        self.over = True
        for connection in reversed(self.connections):
            with suppress(Exception):
                connection.close()
        for sock in self.sockets:
            with suppress(OSError):
                sock.close()


def ssh_machine(destination: Destination, *, scope: str) -> RemoteMachine:
    """The machine; nothing is connected before it is asked."""
    return RemoteMachine(
        destination.name,
        lambda deadline_s: connect(destination, ("targets.machines.attach",), deadline_s),
        scope=scope,
    )


def clean(destination: Destination, days: float = 7.0) -> dict[str, int]:
    """What was cleared away on the host (`reaping.py`); caches older than so many days go."""
    channel = connect(destination, ("targets.machines.reaping", str(days)), CLEAN_S)
    channel.close()
    return {name: int(str(n)) for name, n in channel.said.items() if name != "attached"}


def connect(destination: Destination, arguments: tuple[str, ...], deadline_s: float) -> Channel:
    """A stream to our code on the host. MachineError names host, step and cause."""
    attempt = Attempt()
    steps_s = 2 * deadline_s  # of each step in its thread: ours ends first, with the better words

    def work() -> Channel:
        hops = route(destination.host, destination.config)
        for hop in hops:
            _reach(attempt, hop, steps_s)
        attempt.stage = f"starting {destination.python}"
        return _started(attempt, destination, arguments, steps_s)

    try:
        return _within(work, deadline_s)
    except TimeoutError:
        attempt.close()
        raise MachineError(
            f"{destination.name} ({destination.host}): no answer within {deadline_s:.0f} s while"
            f" {attempt.stage}"
        ) from None
    except MachineError as error:
        attempt.close()
        text = str(error)
        named = text if destination.name in text else f"{destination.name}: {text}"
        raise MachineError(named, retryable=error.retryable) from None
    except (OSError, EOFError, paramiko.SSHException) as error:
        said = attempt.complaint() or getattr(error, "strerror", None) or str(error)
        attempt.close()
        permanent = isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN
        raise MachineError(
            f"{destination.name} ({destination.host}): {said or type(error).__name__} while"
            f" {attempt.stage}",
            retryable=not permanent,
        ) from None


def _within(work: Callable[[], T], deadline_s: float) -> T:
    """What `work` returns or raises; TimeoutError when it is not done in time, whatever it does."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 (handed to the caller)
            failed.append(error)

    thread = threading.Thread(target=run, name="kforge-connect", daemon=True)
    thread.start()
    thread.join(deadline_s)
    if done:
        return done[0]
    if failed:
        raise failed[0]
    raise TimeoutError


def _reach(attempt: Attempt, hop: Hop, deadline_s: float) -> None:
    """Adds the connection to the next hop, its host key checked before anything is told to it."""
    attempt.stage = f"connecting to {hop.host} port {hop.port}"
    pipe = _pipe(attempt, hop, deadline_s)
    attempt.stage = f"exchanging keys with {hop.host}"
    connection = paramiko.Transport(pipe, default_window_size=WINDOW)
    attempt.connections.append(connection)
    connection.set_log_channel("kforge.paramiko")
    connection.banner_timeout = connection.auth_timeout = deadline_s
    options = connection.get_security_options()
    options.key_types = preferred(known_keys(hop), tuple(options.key_types))
    connection.start_client(timeout=deadline_s)
    check(hop, connection.get_remote_server_key())
    attempt.stage = f"showing keys to {hop.host}"
    _authenticate(connection, hop)
    connection.set_keepalive(KEEPALIVE_S)


def _pipe(attempt: Attempt, hop: Hop, deadline_s: float) -> socket.socket | paramiko.Channel:
    """Bytes to the hop's sshd: through the hop before it, its command, or a connection of ours."""
    if attempt.connections:
        through, place = attempt.connections[-1], (hop.host, hop.port)
        return through.open_channel("direct-tcpip", place, ("", 0), None, deadline_s)
    if hop.command is not None:
        pipe: socket.socket = Tunnel(hop.command)
    else:
        pipe = socket.create_connection((hop.host, hop.port), timeout=deadline_s)
        pipe.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    attempt.add(pipe)
    return pipe


def _authenticate(connection: paramiko.Transport, hop: Hop) -> None:
    """By the keys of files and agent; MachineError, never retried, when all are refused."""
    locked = []
    tried = 0
    for name in hop.keys:
        if not Path(name).exists():
            continue
        try:
            key = paramiko.PKey.from_path(name)
        except (paramiko.PasswordRequiredException, TypeError):
            locked.append(name)
            continue
        except (OSError, ValueError, paramiko.SSHException) as error:
            raise MachineError(f"{name} is no private key: {error}", retryable=False) from None
        tried += 1
        if _accepted(connection, hop, key):
            return
    for key in paramiko.Agent().get_keys() if hop.agent and "SSH_AUTH_SOCK" in os.environ else ():
        tried += 1
        if _accepted(connection, hop, key):
            return
    remedy = f"; {', '.join(locked)} has a passphrase: add it with ssh-add" if locked else ""
    raise MachineError(
        f"{hop.alias}: {hop.user}@{hop.host} refused all {tried} keys that were offered{remedy};"
        f" does `ssh {hop.alias}` work without a password?",
        retryable=False,
    )


def _accepted(connection: paramiko.Transport, hop: Hop, key: paramiko.PKey) -> bool:
    try:
        connection.auth_publickey(hop.user, key)
    except (paramiko.AuthenticationException, paramiko.BadAuthenticationType):
        return False
    return bool(connection.is_authenticated())


def _started(
    attempt: Attempt, destination: Destination, arguments: tuple[str, ...], deadline_s: float
) -> Channel:
    """Our code on the host, uploaded unless its content is there, ready for requests."""
    session = attempt.connections[-1].open_session(timeout=deadline_s)
    session.exec_command(
        boot.command(destination.python, destination.root, archive.identity(), *arguments)
    )
    channel = Channel(session, attempt.connections)
    lines = Lines(channel)
    while True:
        told = _told(lines, session, destination, deadline_s)
        if "fatal" in told:
            raise MachineError(f"{destination.name}: {told['fatal']}; free or correct it there")
        if "need" in told:
            attempt.stage = "sending the code"
            data = _code()
            channel.write(b"%d\n" % len(data) + data)
        elif "attached" in told:
            channel.said = told
            return channel
        else:
            attempt.stage = "starting the resident"


def _code() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return archive.build(Path(folder)).read_bytes()


def _told(
    lines: Lines, session: paramiko.Channel, destination: Destination, deadline_s: float
) -> dict[str, object]:
    """The next thing that the boot says; what a login script prints before is passed over."""
    while True:
        try:
            line = lines.next(deadline_s)
        except EOFError:
            said = session.recv_stderr(CHUNK).decode(errors="replace").strip()[-300:]
            raise MachineError(
                f"{destination.name}: {destination.python} did not start"
                f" (status {session.recv_exit_status()}): {' '.join(said.split())};"
                " set python for this machine",
                retryable=False,
            ) from None
        if line is None:
            raise TimeoutError
        with suppress(ValueError):
            told = json.loads(line)
            if isinstance(told, dict):
                return told
