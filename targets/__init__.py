"""Targets by name: a new vendor is one file and one entry."""

from targets.amd import AMD
from targets.apple import APPLE
from targets.base import PROCESSOR, Target
from targets.cpu import CPU
from targets.intel import INTEL
from targets.nvidia import NVIDIA
from targets.remote.kforge_launch import HALVES
from targets.wgsl import TARGET as WGSL

TARGETS: dict[str, Target] = {
    target.name: target for target in (CPU, NVIDIA, AMD, INTEL, APPLE, WGSL)
}

ON_PROCESSOR = frozenset(name for name, t in TARGETS.items() if not t.nodes or PROCESSOR in t.nodes)
"""Targets whose kernels run on the host's processor: two at once would spoil each other's times."""

HALVES.update(
    {word: half for t in TARGETS.values() for half in t.halves for word in half.languages}
)
