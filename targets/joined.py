"""The launcher as one file for an export: the core and the half that a candidate needs.

The half stands in a target's file among things that do not travel, so only the statements that it
reaches are taken; what it imports of `targets` is followed, anything else of ours is refused.
"""

from pathlib import Path

from targets.closure import closure
from targets.remote import kforge_launch
from targets.remote.kforge_launch import CPP, Half


def joined(half: Half) -> str:
    """Source of a `kforge_launch.py` that knows the half's languages beside C and C++."""
    core = Path(kforge_launch.__file__).read_text()
    if half is CPP:
        return core
    kind = type(half)
    parts = closure(kind.__module__, kind.__name__)
    entry = f"HALVES.update(dict.fromkeys({kind.__name__}.languages, {kind.__name__}()))"
    return "\n\n\n".join((core.rstrip(), *parts, entry)) + "\n"
