"""A cloud instance over SSH: only the keys that the cloud has shown are believed."""

from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from data.errors import MachineError
from targets.machines.ec2_entry import Ec2Entry
from targets.machines.instance import by_ssh
from targets.machines.ssh_hosts import check, route

ENTRY = Ec2Entry(
    name="cloud",
    kind="ec2",
    region="r",
    usd_most=1.0,
    template="t",
    user="ubuntu",
    key="/keys/one",
)


def test_a_closed_port_is_passed_by_systems_manager(tmp_path: Path) -> None:
    """The instance is named by its id, and AWS's own tool carries the bytes."""
    machine = by_ssh(replace(ENTRY, ssm=True), tmp_path, scope="s", own=tmp_path / "none")(
        "i-1", ()
    )
    machine.close()
    (hop,) = route("ubuntu@i-1", tmp_path / "ec2" / "cloud" / "config")
    assert hop.command == (
        "aws ssm start-session --region r --target i-1"
        " --document-name AWS-StartSSHSession --parameters portNumber=22"
    )


def test_the_shown_key_is_believed_and_no_other(tmp_path: Path) -> None:
    """Even where the user's own known_hosts has another for that address; jumps are kept."""
    shown, other = (paramiko.RSAKey.generate(1024) for _ in range(2))
    own = tmp_path / "own"
    own.write_text("StrictHostKeyChecking no\nHost 10.*\n  ProxyJump gate\nHost gate\n  User me\n")
    reach = by_ssh(ENTRY, tmp_path / "cache", scope="s", own=own)
    machine = reach("10.0.0.7", (f"{shown.get_name()} {shown.get_base64()}",))
    machine.close()
    gate, hop = route("ubuntu@10.0.0.7", tmp_path / "cache" / "ec2" / "cloud" / "config")
    assert (gate.host, gate.user) == ("gate", "me")
    assert (hop.host, hop.user, hop.keys) == ("10.0.0.7", "ubuntu", ("/keys/one",))
    check(hop, shown)
    with pytest.raises(MachineError, match="HAS CHANGED"):
        check(hop, other)
