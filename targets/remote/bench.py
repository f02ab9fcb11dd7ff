"""The sides of one job: which children it may have, with which files and limits."""

import time
from dataclasses import dataclass
from pathlib import Path

from data.records import Card, MeasureJob
from targets.remote.compiler import library_folder
from targets.remote.operator import LoadedOperator
from targets.remote.sandbox import Limits
from targets.remote.side import Side
from targets.remote.sizing import sizes
from targets.remote.zygote import WARM, Zygote

EAGER, COMPILED = "eager", "torch.compile"
LEAST_MEMORY = 2 << 30
MEMORY_FACTOR = 12
"""Times the bytes of a call: eager chains hold several intermediates, and heaps are never trimmed.

With 6 the reference of KernelBench level 1, 88 (a GELU in five steps) was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A job with all that its sides are made of."""

    job: MeasureJob
    loaded: LoadedOperator
    zygote: Zygote
    cache: Path
    deadline: float
    """A time of `time.monotonic`."""
    seed: int
    card: Card | None = None
    """Measured peaks of the device."""

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def limits(self) -> Limits:
        """The same for every side."""
        largest = max(sizes(self.loaded, s).bytes for s in self.loaded.shapes)
        memory = max(LEAST_MEMORY, MEMORY_FACTOR * largest)
        return Limits(memory_bytes=memory, seconds=max(self.left_s, 1.0))

    def candidate(self, source: str, *, watched: bool = False) -> Side:
        """A child that has executed the candidate's source. Raises SideFault."""
        folder = library_folder(self.cache)
        side = self._side("candidate", readable=(folder,))
        try:
            if watched:
                side.watch()
            side.load(source, folder=folder if folder.exists() else None)
        except BaseException:
            side.close()
            raise
        return side

    def baseline(self, kind: str) -> Side:
        """A child that has executed the operator's source. Raises SideFault."""
        inductor = self.cache / "inductor"
        compiled = kind == COMPILED
        side = self._side(
            kind,
            readable=(self.cache / WARM,) if compiled else (),
            writable=(inductor,) if compiled else (),
        )
        try:
            side.load(self.job.operator.source, class_name="Model")
        except BaseException:
            side.close()
            raise
        return side

    def _side(
        self, name: str, *, readable: tuple[Path, ...] = (), writable: tuple[Path, ...] = ()
    ) -> Side:
        child = self.zygote.child(self.limits(), readable=readable, writable=writable)
        return Side(child, name=name, deadline=self.deadline)
