"""Targets by name: a new vendor is one file and one entry."""

from targets.amd import AMD
from targets.apple import APPLE
from targets.base import Target
from targets.cpu import CPU
from targets.intel import INTEL
from targets.nvidia import NVIDIA
from targets.remote.kforge_launch import HALVES

TARGETS: dict[str, Target] = {target.name: target for target in (CPU, NVIDIA, AMD, INTEL, APPLE)}

ON_PROCESSOR = frozenset({CPU.name, INTEL.name})
"""Targets whose kernels run on the host's processor: two at once would spoil each other's times."""

HALVES.update(
    {word: half for t in TARGETS.values() for half in t.halves for word in half.languages}
)
