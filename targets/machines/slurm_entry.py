"""What a person writes of a batch system in `devices.toml`."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, with_config

from targets.machines.archive import identity
from targets.machines.ec2_entry import Name
from targets.machines.slurm import Batch


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmEntry:
    """One `[[machine]]` whose jobs go through the login host of a batch system."""

    name: Name
    kind: Literal["slurm"]
    host: Annotated[str, Field(pattern=r"^[^\s-]\S*$")]
    """The login host, as for `ssh`."""
    root: Annotated[str, Field(pattern=r"^/")]
    """A folder that login host and nodes share."""
    python: str = "python3"
    """On login host and nodes."""
    options: tuple[str, ...] = ()
    """For sbatch, such as `--partition=gpu` and `--gres=gpu:1`."""
    config: str | None = None
    """Instead of `~/.ssh/config`."""

    @property
    def batch(self) -> Batch:
        """Where its jobs and our code lie."""
        root = PurePosixPath(self.root)
        return Batch(
            folder=root / "batch",
            code=root / "code" / identity(),
            python=self.python,
            options=self.options,
        )
