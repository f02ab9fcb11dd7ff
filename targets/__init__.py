"""Targets by name: a new vendor is one file and one entry."""

from targets.base import Target
from targets.cpu import CPU

TARGETS: dict[str, Target] = {target.name: target for target in (CPU,)}
