"""Where an SSH host is and who it is: `~/.ssh/config` and `known_hosts`, read as ssh reads them."""

import base64
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from data.errors import MachineError

GLOBAL_HOSTS = "/etc/ssh/ssh_known_hosts"
DEFAULT_HOSTS = "~/.ssh/known_hosts"
DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
ALGORITHMS = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""Host key algorithms for a key type where the names differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One SSH connection on the way."""

    alias: str
    host: str
    port: int
    user: str
    keys: tuple[str, ...]
    """Files of private keys, in the order in which they are offered."""
    agent: bool
    known_hosts: tuple[str, ...]
    command: str | None = None
    """What carries the bytes in place of a connection, for the first hop only."""

    @property
    def place(self) -> str:
        """As known_hosts spells it."""
        return self.host if self.port == 22 else f"[{self.host}]:{self.port}"


def route(destination: str, config_file: Path | None = None) -> tuple[Hop, ...]:
    """The hops to `[user@]host[:port]` or an alias, jump hosts first.

    MachineError for a configuration that cannot be followed.
    """
    config = _config(config_file or Path("~/.ssh/config").expanduser())
    return tuple(_hops(destination, config, depth=0))


def _hops(destination: str, config: paramiko.SSHConfig, *, depth: int) -> Iterator[Hop]:
    if depth > 8:
        raise MachineError(f"ProxyJump of {destination} leads in a circle", retryable=False)
    user, _, rest = destination.rpartition("@")
    alias, _, port = rest.partition(":") if rest.count(":") == 1 else (rest, "", "")
    options = config.lookup(alias)
    command = options.get("proxycommand", "none")
    jumps = options.get("proxyjump", "none") if command.lower() == "none" else "none"
    if jumps.lower() != "none":
        for jump in jumps.split(","):
            yield from _hops(jump.strip(), config, depth=depth + 1)
    own = options.get("userknownhostsfile", DEFAULT_HOSTS).split()
    shared = options.get("globalknownhostsfile", GLOBAL_HOSTS).split()
    yield Hop(
        alias=alias,
        host=options["hostname"],
        port=int(port or options.get("port", 22)),
        user=user or options.get("user") or os.environ.get("USER") or "root",
        keys=tuple(str(Path(k).expanduser()) for k in options.get("identityfile", DEFAULT_KEYS)),
        agent=options.get("identitiesonly", "no").lower() != "yes",
        known_hosts=tuple(str(Path(f).expanduser()) for f in (*own, *shared)),
        command=None if command.lower() == "none" else command,
    )


def _config(path: Path) -> paramiko.SSHConfig:
    if not path.exists():
        return paramiko.SSHConfig()
    try:
        return paramiko.SSHConfig.from_path(str(path))
    except (OSError, UnicodeDecodeError, paramiko.SSHException) as error:
        raise MachineError(f"{path} cannot be read: {error}", retryable=False) from None


def known_keys(hop: Hop) -> dict[str, paramiko.PKey]:
    """The host's keys on record, by type."""
    hosts = paramiko.HostKeys()
    for line in _lines(hop):
        entry: Any = None
        with suppress(paramiko.hostkeys.InvalidHostKey):  # what ssh too passes over
            entry = paramiko.hostkeys.HostKeyEntry.from_line(line)
        for name in entry.hostnames if entry else ():
            hosts.add(name, entry.key.get_name(), entry.key)
    return dict(hosts.lookup(hop.place) or {})


def preferred(known: dict[str, paramiko.PKey], offered: tuple[str, ...]) -> tuple[str, ...]:
    """Algorithms with those first whose keys are on record: a host has several keys."""
    first = [name for kind in known for name in ALGORITHMS.get(kind, (kind,)) if name in offered]
    return (*first, *(name for name in offered if name not in first))


def check(hop: Hop, key: paramiko.PKey) -> None:
    """MachineError, never retried, unless the key is the one on record and not revoked."""
    known = known_keys(hop)
    shown = f"{key.get_name()} {fingerprint(key)}"
    line = f"{hop.place} {key.get_name()} {key.get_base64()}"
    if _revoked(hop, key):
        raise MachineError(
            f"{hop.alias}: host key {shown} of {hop.place} is revoked", retryable=False
        )
    if key.get_name() not in known:
        raise MachineError(
            f"{hop.alias}: the host key of {hop.place} is unknown: {shown}; compare it with"
            " `ssh-keygen -lf` of the key on the host, then add it with"
            f" echo '{line}' >> {hop.known_hosts[0]}",
            retryable=False,
        )
    if known[key.get_name()] != key:
        raise MachineError(
            f"{hop.alias}: THE HOST KEY OF {hop.place} HAS CHANGED to {shown}; on record is"
            f" {fingerprint(known[key.get_name()])}. Somebody may be listening. If the host was"
            f" set up anew: ssh-keygen -R '{hop.place}' -f {hop.known_hosts[0]}, then add it again",
            retryable=False,
        )


def fingerprint(key: paramiko.PKey) -> str:
    """As ssh shows it.

    >>> len(fingerprint(paramiko.RSAKey.generate(1024)))
    50
    """
    digest = hashlib.sha256(key.asbytes()).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _revoked(hop: Hop, key: paramiko.PKey) -> bool:
    """Whether a `@revoked` line holds the key; paramiko passes over marked lines."""
    return any(s.startswith("@revoked") and key.get_base64() in s for s in _lines(hop))


def _lines(hop: Hop) -> Iterator[str]:
    for path in map(Path, hop.known_hosts):
        if path.exists():
            yield from (s.strip() for s in path.read_text(errors="replace").splitlines())
