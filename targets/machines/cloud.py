"""Instances of EC2: what one costs, how one starts and ends, and which were left behind.

Everything that is started or taken carries tags: whose it is, and until when it may run. Nothing
that costs money is called before the price is known to be below the ceiling.
"""

import hashlib
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from data.errors import MachineError, MisuseError
from targets.remote.claims import born, system

MARK = "kforge:machine"
"""Tags: the machine's name in devices.toml, who started it, until when, and what to do then."""
OWNER, DEADLINE, AFTER = "kforge:owner", "kforge:deadline", "kforge:after"
LIVING = ("pending", "running")
RETRIES = {"mode": "standard", "max_attempts": 4}
POLL_S = 2.0
END_S = 60.0

_PRINTED = re.compile(r"BEGIN SSH HOST KEY KEYS-+\s*\n(.*?)-+END SSH HOST KEY KEYS", re.DOTALL)
QUOTA = ("VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded")
CAPACITY = (
    *("InsufficientInstanceCapacity", "InsufficientHostCapacity", "UnfulfillableCapacity"),
    *("InsufficientCapacity", "SpotMaxPriceTooLow", "Server.InsufficientInstanceCapacity"),
)


class QuotaError(MachineError):
    """The account may not run so many: asking again does not help."""


class CapacityError(MachineError):
    """There is none to be had now: later, or elsewhere, there may be."""


class After(StrEnum):
    """What becomes of an instance that is not needed any more."""

    STOP = "stop"
    TERMINATE = "terminate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person configures of an EC2 machine."""

    name: str
    region: str
    template: str | None = None
    """Launch template, by name or id; a new instance is terminated afterwards."""
    tag: str | None = None
    """`KEY=VALUE` of an instance that is there already; it is stopped afterwards."""
    spot: bool = False
    usd_per_hour: float | None = None
    """Price on demand, as the owner knows it; a spot price is asked."""
    usd_most: float
    """For `hours` of one instance: above it nothing is started."""
    hours: float = 2.0
    """The instance is never kept longer."""
    ssm: bool = False
    """Whether SSH goes through Systems Manager, which knows instances by their ids."""
    host_key: str | None = None
    """`TYPE BASE64` of its SSH host; None: a new instance prints its keys on its console."""

    @property
    def after(self) -> After:
        return After.TERMINATE if self.template else After.STOP


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A machine of the cloud that costs money while it lives."""

    id: str
    host: str
    """Public name, else private address; empty while it has none."""
    state: str
    tags: Mapping[str, str]


def client(region: str) -> Any:
    """The EC2 API of a region, in a session of its own: the default one is not for threads."""
    import boto3.session  # noqa: PLC0415 (0.2 s that only a command on instances should pay)
    from botocore.config import Config  # noqa: PLC0415

    calls = Config(connect_timeout=10, read_timeout=60, retries=RETRIES)
    with _told(f"region {region}"):
        return boto3.session.Session().client("ec2", region_name=region, config=calls)


def start(ec2: Any, wanted: Wanted) -> Instance:
    """A started instance, marked as ours. MisuseError above the ceiling, before anything costs."""
    check_price(ec2, wanted)
    marks = {
        MARK: wanted.name,
        OWNER: owner(),
        AFTER: wanted.after.value,
        DEADLINE: (datetime.now(UTC) + timedelta(hours=wanted.hours)).isoformat("T", "seconds"),
    }
    with _told(f"machine {wanted.name}"):
        return _launched(ec2, wanted, marks) if wanted.template else _woken(ec2, wanted, marks)


def check_price(ec2: Any, wanted: Wanted) -> None:
    """MisuseError when the price for the hours is unknown or above the ceiling."""
    price = _spot_price(ec2, wanted) if wanted.spot else wanted.usd_per_hour
    if price is None:
        raise MisuseError(
            f"machine {wanted.name}: the price is not known; give usd_per_hour in devices.toml"
        )
    if price * wanted.hours > wanted.usd_most:
        raise MisuseError(
            f"machine {wanted.name}: {wanted.hours:g} h at {price:.4g} USD/h are"
            f" {price * wanted.hours:.2f} USD, above usd_most = {wanted.usd_most:g};"
            " nothing was started"
        )


def reached(ec2: Any, instance: Instance, until: float) -> Instance:
    """The instance when it runs and has an address. MachineError at `until` (monotonic)."""
    while time.monotonic() < until:
        with _told(instance.id):
            (now,) = described(ec2, [{"Name": "instance-id", "Values": [instance.id]}]) or (None,)
        if now is not None and now.state == "running" and now.host:
            return now
        if now is not None and now.state not in LIVING:
            raise CapacityError(f"{instance.id} is {now.state} instead of running: start it again")
        time.sleep(POLL_S)
    raise MachineError(f"{instance.id} has no address yet: the time for its start is over")


def host_keys(ec2: Any, wanted: Wanted, instance: str, until: float) -> tuple[str, ...]:
    """`TYPE BASE64` of the SSH host, never asked of the host itself. MachineError at `until`."""
    if wanted.host_key is not None:
        return (wanted.host_key,)
    while time.monotonic() < until:
        with _told(f"console of {instance}"):
            text = ec2.get_console_output(InstanceId=instance).get("Output", "")
        if keys := printed_keys(text):
            return keys
        time.sleep(POLL_S)
    raise MachineError(
        f"{instance} printed no SSH host keys on its console; give host_key in devices.toml"
    )


def printed_keys(console: str) -> tuple[str, ...]:
    """The host keys that cloud-init prints at the first boot; empty before it has."""
    found = _PRINTED.findall(console)
    lines = (line.split() for line in (found[-1].splitlines() if found else ()))
    return tuple(f"{words[0]} {words[1]}" for words in lines if len(words) >= 2)


def end(ec2: Any, instance: str, after: After) -> None:
    """Stops or terminates, and waits until that has begun. MachineError when it has not."""
    with _told(f"ending {instance}"):
        call = ec2.terminate_instances if after is After.TERMINATE else ec2.stop_instances
        call(InstanceIds=[instance])
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            (now,) = described(ec2, [{"Name": "instance-id", "Values": [instance]}]) or (None,)
            if now is None or now.state not in LIVING:
                return _unmark(ec2, instance) if after is After.STOP else None
            time.sleep(POLL_S)
    raise MachineError(f"{instance} still runs {END_S:.0f} s after it was told to {after}: end it")


def _unmark(ec2: Any, instance: str) -> None:
    """Whoever starts it by hand later must not find it reaped."""
    ec2.delete_tags(Resources=[instance], Tags=[{"Key": k} for k in (MARK, OWNER, DEADLINE, AFTER)])


def strays(ec2: Any, name: str) -> list[Instance]:
    """Instances for a machine that live on although their time or their controller is over."""
    filters = [
        {"Name": f"tag:{MARK}", "Values": [name]},
        {"Name": "instance-state-name", "Values": list(LIVING)},
    ]
    with _told("looking for strays"):
        return [i for i in described(ec2, filters) if _overdue(i) or _orphaned(i)]


def lives(ec2: Any, instance: str) -> bool:
    """Whether it runs or is about to: a spot instance may be taken back at any moment."""
    with _told(instance):
        found = described(ec2, [{"Name": "instance-id", "Values": [instance]}])
    return any(i.state in LIVING for i in found)


def owner() -> str:
    """Host, system, pid and birth of the calling process: others can tell whether it lives."""
    place = hashlib.sha256(system().encode()).hexdigest()[:16]
    return f"{socket.gethostname()} {place} {os.getpid()} {born(os.getpid())}"


def described(ec2: Any, filters: list[dict[str, Any]]) -> list[Instance]:
    """All instances that match; ClientError is the caller's."""
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    return [
        Instance(
            id=found["InstanceId"],
            host=found.get("PublicDnsName")
            or found.get("PublicIpAddress")
            or found.get("PrivateIpAddress")
            or "",
            state=found["State"]["Name"],
            tags={t["Key"]: t["Value"] for t in found.get("Tags", ())},
        )
        for page in pages
        for reservation in page["Reservations"]
        for found in reservation["Instances"]
    ]


def _launched(ec2: Any, wanted: Wanted, marks: Mapping[str, str]) -> Instance:
    market: dict[str, Any] = {}
    if wanted.spot:
        most = {"MaxPrice": f"{wanted.usd_most / wanted.hours:.4f}", "SpotInstanceType": "one-time"}
        market = {"InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": most}}
    answer = ec2.run_instances(
        LaunchTemplate=_template(wanted),
        MinCount=1,
        MaxCount=1,
        InstanceInitiatedShutdownBehavior="terminate",
        TagSpecifications=[{"ResourceType": "instance", "Tags": _tags(marks)}],
        **market,
    )
    found = answer["Instances"][0]
    return Instance(id=found["InstanceId"], host="", state="pending", tags=marks)


def _woken(ec2: Any, wanted: Wanted, marks: Mapping[str, str]) -> Instance:
    """An instance with the tag that nobody of us uses."""
    key, _, value = (wanted.tag or "").partition("=")
    found = described(ec2, [{"Name": f"tag:{key}", "Values": [value]}])
    free = [i for i in found if i.state == "stopped" or (i.state == "running" and _free(i))]
    if not free:
        states = ", ".join(f"{i.id} {i.state}" for i in found) or "none"
        raise CapacityError(f"no instance with tag {wanted.tag} is free ({states})")
    ec2.create_tags(Resources=[free[0].id], Tags=_tags(marks))
    ec2.start_instances(InstanceIds=[free[0].id])
    return Instance(id=free[0].id, host="", state="pending", tags=marks)


def _free(instance: Instance) -> bool:
    return OWNER not in instance.tags or _orphaned(instance) or _overdue(instance)


def _overdue(instance: Instance) -> bool:
    try:
        return datetime.fromisoformat(instance.tags[DEADLINE]) < datetime.now(UTC)
    except (KeyError, ValueError):
        return False


def _orphaned(instance: Instance) -> bool:
    """Whether its controller ran in this system and is gone; of others only the deadline tells."""
    words = instance.tags.get(OWNER, "").split()
    mine = owner().split()
    if len(words) != len(mine) or words[:2] != mine[:2]:
        return False
    return born(int(words[2])) != words[3]


def _spot_price(ec2: Any, wanted: Wanted) -> float | None:
    """The highest current price of the template's type over all zones; None when unknown."""
    with _told(f"the price of machine {wanted.name}"):
        template = _template(wanted)
        versions = ec2.describe_launch_template_versions(
            **{k: v for k, v in template.items() if k != "Version"}, Versions=["$Default"]
        )["LaunchTemplateVersions"]
        kind = versions[0]["LaunchTemplateData"].get("InstanceType") if versions else None
        if kind is None:
            return None
        history = ec2.describe_spot_price_history(
            InstanceTypes=[kind],
            ProductDescriptions=["Linux/UNIX"],
            StartTime=datetime.now(UTC),
        )["SpotPriceHistory"]
    return max((float(p["SpotPrice"]) for p in history), default=None)


def _template(wanted: Wanted) -> dict[str, str]:
    name = wanted.template or ""
    key = "LaunchTemplateId" if name.startswith("lt-") else "LaunchTemplateName"
    return {key: name, "Version": "$Default"}


def _tags(marks: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": k, "Value": v} for k, v in marks.items()]


@contextmanager
def _told(about: str) -> Iterator[None]:
    """Faults of the API as ours, by what a person can do about them."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        yield
    except ClientError as error:
        code, said = error.response["Error"]["Code"], error.response["Error"]["Message"]
        if code in QUOTA:
            raise QuotaError(
                f"{about}: the account's quota is used up ({said}): raise it"
            ) from None
        if code in CAPACITY:
            raise CapacityError(f"{about}: no capacity now ({said}): later or elsewhere") from None
        raise MachineError(f"{about}: EC2 refused ({code}): {said}") from None
    except BotoCoreError as error:
        raise MachineError(f"{about}: EC2 cannot be asked: {error}") from None
