"""A `[[machine]]` of `devices.toml` that is an instance of EC2."""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator, with_config

from targets.machines.cloud import Wanted

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=40)]
Positive = Annotated[float, Field(gt=0)]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class Ec2Entry:
    """An instance of EC2: a new one from a launch template, or one that is there, by its tag."""

    name: Name
    kind: Literal["ec2"]
    region: str
    usd_most: Positive
    """Dollars for `hours`: above it nothing is started."""
    template: str | None = None
    tag: Annotated[str, Field(pattern=r"^[^=]+=.+$")] | None = None
    spot: bool = False
    usd_per_hour: Positive | None = None
    """Price on demand; a spot price is asked."""
    hours: Annotated[float, Field(gt=0, le=48)] = 2.0
    idle_minutes: Positive = 10.0
    user: str = "ec2-user"
    key: str | None = None
    """File of the private key; None: as ssh finds it."""
    host_key: str | None = None
    ssm: bool = False
    """SSH through Systems Manager, where no port is open: needs AWS's own tools here."""
    python: str = "python3"
    root: str = "~/.kforge"

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.template is None) == (self.tag is None):
            raise ValueError("give either template or tag")
        if self.spot and self.template is None:
            raise ValueError("spot needs a template: an instance that is there has its price")
        return self

    @property
    def wanted(self) -> Wanted:
        return Wanted(
            name=self.name,
            region=self.region,
            template=self.template,
            tag=self.tag,
            spot=self.spot,
            usd_per_hour=self.usd_per_hour,
            usd_most=self.usd_most,
            hours=self.hours,
            host_key=self.host_key,
            ssm=self.ssm,
        )
