"""The cloud: gone after success, failure, cancel and crash; nothing bought above the ceiling."""

import asyncio
import base64
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from data.errors import MachineError, MisuseError
from data.records import Device
from targets.machines import cloud
from targets.machines.base import Completed
from targets.machines.cloud import After, CapacityError, QuotaError, Wanted
from targets.machines.ec2 import Ec2Machine, reap
from tests.targets.machines.amazon import amazon

pytestmark = pytest.mark.net
REGION = "us-east-1"
KEY = "ssh-ed25519 AAAA"
CONSOLE = """[   12.3] cloud-init: generating keys
-----BEGIN SSH HOST KEY KEYS-----\r
ecdsa-sha2-nistp256 AAAAE2 root@ip-10-0-0-1\r
ssh-ed25519 AAAAC3 root@ip-10-0-0-1\r
-----END SSH HOST KEY KEYS-----\r
login:"""
NEW = Wanted(
    name="gpu", region=REGION, template="bench", usd_per_hour=2.0, usd_most=5.0, host_key=KEY
)
OURS = replace(NEW, template=None, tag="role=bench")
DEVICE = Device(name="h200", target="nvidia", vendor="nvidia", arch="sm_90", machine="gpu")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with amazon() as url:
        ec2 = boto3.client("ec2", region_name=REGION)
        image = ec2.describe_images()["Images"][0]["ImageId"]
        data = {"ImageId": image, "InstanceType": "g4dn.xlarge"}
        ec2.create_launch_template(LaunchTemplateName="bench", LaunchTemplateData=data)
        yield url


@pytest.fixture
def ec2(server: str) -> Iterator[Any]:
    """The API; whatever lives at the end is ended."""
    api = boto3.client("ec2", region_name=REGION)
    yield api
    for found in living(api):
        api.terminate_instances(InstanceIds=[found.id])


def living(api: Any) -> list[cloud.Instance]:
    return cloud.described(api, [{"Name": "instance-state-name", "Values": [*cloud.LIVING]}])


class Host:
    """What SSH would reach."""

    def __init__(self, address: str, keys: tuple[str, ...], *, answers: bool = True) -> None:
        assert keys == (KEY,)
        self.name, self.address, self.answers = "gpu", address, answers
        self.closed = False

    async def run(self, command: tuple[str, ...], deadline_s: float) -> Completed:
        del command, deadline_s
        if not self.answers:
            raise MachineError(f"{self.address}: connection refused")
        return Completed(code=0, out=b"", err=b"", seconds=0.0)

    async def put(self, here: Path, there: PurePath) -> None: ...

    async def get(self, there: PurePath, here: Path) -> None: ...

    @asynccontextmanager
    async def lease(self, device: Device) -> AsyncIterator[None]:
        del device
        yield

    turn = lease

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        del args
        await asyncio.sleep(deadline_s)
        return op

    def close(self) -> None:
        self.closed = True


def deaf(address: str, keys: tuple[str, ...]) -> Host:
    return Host(address, keys, answers=False)


async def test_gone_after_success(ec2: Any) -> None:
    """Started once for all that ask, marked with owner and deadline, terminated at the end."""
    hosts: list[Host] = []

    def reach(address: str, keys: tuple[str, ...]) -> Host:
        hosts.append(Host(address, keys))
        return hosts[-1]

    machine = Ec2Machine(NEW, reach)
    async with machine.lease(DEVICE):
        answers = await asyncio.gather(*(machine.judge("admit", {}, 0.01) for _ in range(4)))
    assert answers == ["admit"] * 4
    (found,) = living(ec2)
    assert found.host == hosts[0].address
    assert found.tags[cloud.MARK] == "gpu"
    assert {cloud.OWNER, cloud.DEADLINE} <= found.tags.keys()
    machine.close()
    assert living(ec2) == []
    assert [host.closed for host in hosts] == [True]


async def test_gone_after_failure(ec2: Any) -> None:
    """An instance whose SSH never answers is not left running; the reason is named."""
    machine = Ec2Machine(NEW, deaf, start_s=1.0)
    with pytest.raises(MachineError, match=r"did not answer within 1 s.*connection refused"):
        await machine.run(("true",), 1.0)
    assert living(ec2) == []


async def test_gone_after_cancel_in_the_middle_of_the_start(ec2: Any) -> None:
    """Ctrl-C while it comes up: ended, and soon."""
    machine = Ec2Machine(NEW, deaf, start_s=60.0)
    asking = asyncio.ensure_future(machine.run(("true",), 1.0))
    while not living(ec2):
        await asyncio.sleep(0.05)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, 20.0)
    assert living(ec2) == []


async def test_gone_when_nobody_needs_it_for_long(ec2: Any) -> None:
    """Idle it ends by itself, in use it does not; whoever asks later starts another."""
    machine = Ec2Machine(NEW, Host, idle_s=0.5)
    async with machine.lease(DEVICE):
        await asyncio.sleep(1.5)
        assert len(living(ec2)) == 1
    for _ in range(100):
        if not living(ec2):
            break
        await asyncio.sleep(0.1)
    assert living(ec2) == []
    assert await machine.judge("admit", {}, 0.0) == "admit"
    machine.close()
    assert living(ec2) == []


async def test_an_instance_that_the_cloud_takes_back_is_followed_by_another(ec2: Any) -> None:
    """A fault of a living instance changes nothing; a spot instance that is gone is replaced."""
    hosts: list[Host] = []

    def reach(address: str, keys: tuple[str, ...]) -> Host:
        hosts.append(Host(address, keys))
        return hosts[-1]

    machine = Ec2Machine(NEW, reach)
    await machine.run(("true",), 5)
    (first,) = living(ec2)
    hosts[0].answers = False
    with pytest.raises(MachineError):
        await machine.run(("true",), 5)
    assert [i.id for i in living(ec2)] == [first.id]
    ec2.terminate_instances(InstanceIds=[first.id])
    with pytest.raises(MachineError):
        await machine.run(("true",), 5)
    await machine.run(("true",), 5)
    assert first.id not in {i.id for i in living(ec2)}
    assert len(living(ec2)) == 1
    assert hosts[0].closed
    machine.close()
    assert living(ec2) == []


def test_gone_after_a_crash_and_reap(ec2: Any, server: str) -> None:
    """What a killed controller left behind is ended; what a living one uses is not."""
    del server
    program = (
        "import sys, time; from targets.machines import cloud;"
        "from tests.targets.machines.test_ec2 import NEW;"
        "cloud.start(cloud.client('us-east-1'), NEW); print('started', flush=True); time.sleep(99)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        assert reap("gpu", REGION) == []
        assert len(living(ec2)) == 1
        process.send_signal(signal.SIGKILL)
    (told,) = reap("gpu", REGION)
    assert told.startswith("i-")
    assert told.endswith("told to terminate")
    assert living(ec2) == []


def test_an_instance_beyond_its_deadline_is_reaped_wherever_its_owner_is(ec2: Any) -> None:
    """Of other hosts' controllers only the deadline tells."""
    found = cloud.start(ec2, NEW)
    tags = [{"Key": cloud.OWNER, "Value": "elsewhere 0123 77 1234"}]
    ec2.create_tags(Resources=[found.id], Tags=tags)
    assert reap("gpu", REGION) == []
    past = [{"Key": cloud.DEADLINE, "Value": "2020-01-01T00:00:00+00:00"}]
    ec2.create_tags(Resources=[found.id], Tags=past)
    assert len(reap("gpu", REGION)) == 1
    assert living(ec2) == []


@pytest.mark.parametrize("spot", [False, True])
def test_a_price_above_the_ceiling_buys_nothing(ec2: Any, *, spot: bool) -> None:
    """Refused with the sum, before any call that costs money."""
    called: list[str] = []
    ec2.meta.events.register("before-call", lambda model, **_: called.append(model.name))
    dear = replace(NEW, spot=spot, usd_most=1e-6)
    with pytest.raises(MisuseError, match=r"2 h at .* above usd_most = 1e-06; nothing"):
        cloud.start(ec2, dear)
    assert not [name for name in called if not name.startswith("Describe")]
    assert living(ec2) == []


def test_an_unknown_price_buys_nothing(ec2: Any) -> None:
    """No guess."""
    with pytest.raises(MisuseError, match="price is not known"):
        cloud.start(ec2, replace(NEW, usd_per_hour=None))


def test_a_spot_instance_is_bought_below_the_ceiling(ec2: Any) -> None:
    """With the ceiling as its highest price."""
    found = cloud.start(ec2, replace(NEW, spot=True, usd_per_hour=None, usd_most=100.0))
    assert [i.id for i in living(ec2)] == [found.id]


async def test_an_instance_that_was_there_is_stopped_and_left_as_it_was(ec2: Any) -> None:
    """Found by its tag, never terminated, without our marks afterwards; a second one waits."""
    image = ec2.describe_images()["Images"][0]["ImageId"]
    role = [{"ResourceType": "instance", "Tags": [{"Key": "role", "Value": "bench"}]}]
    made = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=role)
    name = made["Instances"][0]["InstanceId"]
    ec2.stop_instances(InstanceIds=[name])
    machine = Ec2Machine(OURS, Host)
    assert await machine.judge("admit", {}, 0.0) == "admit"
    assert [i.id for i in living(ec2)] == [name]
    with pytest.raises(CapacityError, match=f"is free .{name} running"):
        cloud.start(ec2, OURS)
    machine.close()
    (found,) = cloud.described(ec2, [{"Name": "instance-id", "Values": [name]}])
    assert found.state == "stopped"
    assert found.tags == {"role": "bench"}
    ec2.terminate_instances(InstanceIds=[name])


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, QuotaError) for code in cloud.QUOTA),
        *((code, CapacityError) for code in cloud.CAPACITY),
        ("UnauthorizedOperation", MachineError),
    ],
)
def test_quota_and_capacity_are_told_apart(ec2: Any, code: str, kind: type[MachineError]) -> None:
    """One is asked for again later, the other is for a person."""
    with Stubber(ec2) as stub:
        stub.add_client_error("run_instances", code, "no")
        with pytest.raises(MachineError, match=r"machine gpu: .*no") as caught:
            cloud.start(ec2, NEW)
    assert type(caught.value) is kind


def test_a_cloud_that_cannot_be_asked_is_the_worlds_fault(
    ec2: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No keys: one line."""
    del ec2
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with pytest.raises(MachineError, match="EC2 cannot be asked: Unable to locate credentials"):
        cloud.start(cloud.client(REGION), NEW)


def test_host_keys_come_from_the_console_not_from_the_host(ec2: Any) -> None:
    """A new instance's keys are those that the cloud shows; without any it is not trusted."""
    fresh = replace(NEW, host_key=None)
    with Stubber(ec2) as stub:
        for text in ("", "booting", CONSOLE):
            asked = {"InstanceId": "i-1"}
            output = {"InstanceId": "i-1", "Output": base64.b64encode(text.encode()).decode()}
            stub.add_response("get_console_output", output, asked)
        keys = cloud.host_keys(ec2, fresh, "i-1", float("inf"))
    assert keys == ("ecdsa-sha2-nistp256 AAAAE2", "ssh-ed25519 AAAAC3")
    with pytest.raises(MachineError, match="printed no SSH host keys"):
        cloud.host_keys(ec2, fresh, "i-1", 0.0)


def test_new_instances_go_and_old_ones_stay() -> None:
    """What becomes of it follows from where it came from."""
    assert (NEW.after, OURS.after) == (After.TERMINATE, After.STOP)
