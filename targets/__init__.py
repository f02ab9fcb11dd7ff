"""Targets by name: a new vendor is one file in this folder, which calls its own `TARGET`."""

from importlib import import_module
from pkgutil import iter_modules

from targets.base import PROCESSOR, Target
from targets.remote.kforge_launch import HALVES


def found() -> dict[str, Target]:
    """The targets of the modules here, in the modules' order."""
    names = [module.name for module in iter_modules(__path__) if not module.ispkg]
    modules = [import_module(f"{__name__}.{name}") for name in names]
    targets: list[Target] = [vars(m)["TARGET"] for m in modules if "TARGET" in vars(m)]
    return {target.name: target for target in targets}


TARGETS: dict[str, Target] = found()

ON_PROCESSOR = frozenset(name for name, t in TARGETS.items() if not t.nodes or PROCESSOR in t.nodes)
"""Targets whose kernels run on the host's processor: two at once would spoil each other's times."""

HALVES.update(
    {word: half for t in TARGETS.values() for half in t.halves for word in half.languages}
)
