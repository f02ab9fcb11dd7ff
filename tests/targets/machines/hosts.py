"""SSH hosts on this machine: a network namespace each, with its own sshd, keys and folders.

The file systems and process numbers are shared, so that tests can look into every host.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from targets.machines.ssh import Destination
from targets.remote.offshoots import alive, born

SSHD = "/usr/sbin/sshd"
MARK = "KFORGE_TEST_HOST"


def missing() -> str:
    """Why there can be no hosts here; empty when there can."""
    if os.getuid() != 0:
        return "needs root for network namespaces"
    lacking = [t for t in ("ip", "ssh-keygen", SSHD) if shutil.which(t) is None]
    if lacking:
        return f"needs {', '.join(lacking)}: apt-get install openssh-server iproute2"
    done = _run("unshare", "--net", "true", check=False)
    return "" if done.returncode == 0 else "network namespaces are not allowed here"


class Host:
    """One host; `link` is the end of its cable on this side."""

    def __init__(self, folder: Path, number: int, key: Path) -> None:
        self.folder, self.number, self.key = folder, number, key
        self.name = f"kf{os.getpid() % 10000}h{number}"
        self.link = f"{self.name}a"
        net = _free_net(number)
        self.here, self.address = f"{net}.1", f"{net}.2"
        self.root = folder / "root"
        self.known_hosts = folder / "known_hosts"
        folder.mkdir(parents=True)
        self.host_key = folder / "host_key"
        self.new_host_key()
        self._sshd: subprocess.Popen[bytes] | None = None

    def new_host_key(self) -> None:
        self.host_key.unlink(missing_ok=True)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.host_key))

    def trust(self) -> None:
        """Writes the host's key into its known_hosts."""
        kind, key, *_ = self.host_key.with_suffix(".pub").read_text().split()
        self.known_hosts.write_text(f"{self.address} {kind} {key}\n")

    def up(self) -> None:
        """Lays the cable and starts sshd."""
        other = f"{self.name}b"
        _run("ip", "netns", "add", self.name)
        _run("ip", "link", "add", self.link, "type", "veth", "peer", "name", other)
        _run("ip", "link", "set", other, "netns", self.name)
        _run("ip", "addr", "add", f"{self.here}/24", "dev", self.link)
        _run("ip", "link", "set", self.link, "up")
        for words in (
            f"addr add {self.address}/24 dev {other}",
            f"link set {other} up",
            "link set lo up",
        ):
            _run("ip", "-n", self.name, *words.split())
        self.start_sshd()

    def start_sshd(self) -> None:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port 22\nListenAddress {self.address}\nHostKey {self.host_key}\n"
            f"AuthorizedKeysFile {self.key}.pub\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 100\nMaxSessions 100\n"
            f"PidFile none\nSetEnv {MARK}={self.name}\n"
        )
        with (self.folder / "sshd.log").open("ab") as log:
            self._sshd = subprocess.Popen(
                ["ip", "netns", "exec", self.name, SSHD, "-D", "-e", "-f", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", MARK: self.name},
            )
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if "22" in _run("ip", "netns", "exec", self.name, "ss", "-ltn").stdout:
                return
            time.sleep(0.05)
        raise RuntimeError((self.folder / "sshd.log").read_text())

    def enter(self, *words: str) -> None:
        """Runs a command within the host's own view of the file system."""
        assert self._sshd is not None
        _run("nsenter", "-m", "-t", str(self._sshd.pid), *words)

    def mounted(self, name: str, size: str) -> Path:
        """A small disk of the host, as it is seen from here."""
        (self.folder / name).mkdir()
        self.enter("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(self.folder / name))
        assert self._sshd is not None
        return Path(f"/proc/{self._sshd.pid}/root{self.folder / name}")

    def cut(self) -> None:
        _run("ip", "link", "set", self.link, "down")

    def mend(self) -> None:
        _run("ip", "link", "set", self.link, "up")

    def kill_sshd(self) -> None:
        """The listener and all its sessions; what they started goes on."""
        for pid in self.processes():
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip().startswith("sshd"):
                    os.kill(pid, signal.SIGKILL)
        self._reap()

    def reboot(self) -> None:
        """Kills every process of the host and starts sshd again."""
        self.kill_all()
        self.start_sshd()

    def kill_all(self) -> None:
        while left := self.processes():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        self._reap()

    def processes(self) -> list[int]:
        """All that runs in the host's network, the judge's sandboxes too: they carry its mark."""
        listed = _run("ip", "netns", "pids", self.name, check=False).stdout.split()
        marked = alive(0, f"{MARK}={self.name}")
        return sorted({p for p in (*map(int, listed), *marked) if born(p)})

    def commands(self, pattern: str) -> list[str]:
        """Command lines of the host's processes that match."""
        found = []
        for pid in self.processes():
            with suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found += [line] if re.search(pattern, line) else []
        return found

    def destination(self, *, python: str = "python3", options: Sequence[str] = ()) -> Destination:
        """How KForge reaches it, by an alias of a configuration file of its own."""
        config = self.folder / "ssh_config"
        lines = (
            f"Host {self.name}",
            f"HostName {self.address}",
            "User root",
            f"IdentityFile {self.key}",
            "IdentitiesOnly yes",
            f"UserKnownHostsFile {self.known_hosts}",
            "GlobalKnownHostsFile /dev/null",
            *options,
        )
        config.write_text("\n  ".join(lines) + "\n")
        return Destination(
            name=f"lab{self.number}",
            host=self.name,
            python=python,
            root=str(self.root),
            config=config,
        )

    def down(self) -> None:
        """Leaves nothing behind."""
        with suppress(subprocess.CalledProcessError):
            self.kill_all()
        _run("ip", "netns", "del", self.name, check=False)
        _run("ip", "link", "del", self.link, check=False)

    def _reap(self) -> None:
        if self._sshd is not None:
            self._sshd.kill()
            self._sshd.wait()


def _free_net(number: int) -> str:
    """Three numbers of an address that no other test's host has now."""
    taken = _run("ip", "-4", "-o", "addr").stdout
    nets = (f"10.{200 + (os.getpid() + shift) % 50}.{number}" for shift in range(50))
    return next(net for net in nets if f" {net}." not in taken)


def _run(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=check, capture_output=True, text=True, timeout=60)
