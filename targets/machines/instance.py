"""How an instance of the cloud is reached: SSH, with the host keys that the cloud has shown."""

import shlex
from pathlib import Path

from targets.machines.ec2 import Reach
from targets.machines.ec2_entry import Ec2Entry
from targets.machines.remote import RemoteMachine
from targets.machines.ssh import Destination, ssh_machine


def session(region: str) -> str:
    """AWS's own command for SSH to an instance without an open port, as its documentation has it.

    https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-getting-started-enable-ssh-connections.html
    """
    words = ("--document-name", "AWS-StartSSHSession", "--parameters", "portNumber=%p")
    return shlex.join(("aws", "ssm", "start-session", "--region", region, "--target", "%h", *words))


def by_ssh(entry: Ec2Entry, folder: Path, *, scope: str, own: Path | None = None) -> Reach:
    """What makes the machine of an address; `own` is the user's ssh config, for jumps and keys."""
    config = own or Path("~/.ssh/config").expanduser()

    def reach(address: str, keys: tuple[str, ...]) -> RemoteMachine:
        place = folder / "ec2" / entry.name
        place.mkdir(parents=True, exist_ok=True)
        known = place / "known_hosts"
        known.write_text("".join(f"{address} {key}\n" for key in keys))
        theirs = config.read_text() if config.exists() else ""
        identity = f"  IdentityFile {entry.key}\n" if entry.key else ""
        way = f"  ProxyCommand {session(entry.region)}\n" if entry.ssm else ""
        block = f"Host {address}\n  UserKnownHostsFile {known}\n{identity}{way}"
        (place / "config").write_text(f"{block}\nHost *\n{theirs}")
        return ssh_machine(
            Destination(
                name=entry.name,
                host=f"{entry.user}@{address}",
                python=entry.python,
                root=entry.root,
                config=place / "config",
            ),
            scope=scope,
        )

    return reach
