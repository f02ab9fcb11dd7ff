"""The sides of one job: which children it may have, with which files and limits."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from data.errors import MachineError
from data.records import Card, MeasureJob, Policy
from targets.remote import emulator, inherited
from targets.remote.accelerator import HOST, Kind
from targets.remote.allowance import Allowance
from targets.remote.nursery import Nursery
from targets.remote.operator import LoadedOperator
from targets.remote.output import SideFault
from targets.remote.sandbox import Limits, View
from targets.remote.side import Side
from targets.remote.sizing import sizes
from targets.remote.zygote import WARM, Zygote

CANDIDATE, EAGER, COMPILED = "candidate", "eager", "torch.compile"
LEAST_MEMORY = 2 << 30
DEVICE_MEMORY = 12 << 30
"""Of the host, for a child with a context and a compiler for it."""
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
    candidates: Allowance
    baselines: Allowance
    card: Card | None = None
    """Measured peaks of the device."""
    kind: Kind = HOST
    kept: Path | None = None
    """What the candidate's first child has built at run time, for its later ones alone."""
    own: Path | None = None
    """The compiled kernels of the candidate and of its parent; None where none were recorded."""
    nursery: Nursery = field(default_factory=Nursery)
    pids: list[int] = field(default_factory=list)
    """Of all children so far."""

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def limits(self) -> Limits:
        """The same for every side."""
        largest = max(sizes(self.loaded, s).bytes for s in self.loaded.shapes)
        least = DEVICE_MEMORY if self.kind.maps_answers else LEAST_MEMORY
        memory = max(least, MEMORY_FACTOR * largest)
        return Limits(memory_bytes=memory, seconds=max(self.candidates.left_s, 1.0))

    def close(self) -> None:
        """Ends children that nobody took, forgets what the candidate has built."""
        self.nursery.close()
        for folder in (self.kept, self.own):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def passing(self, side: Side) -> Iterator[Side]:
        """The side, which ends with the block; on a device behind it, beside what follows."""
        try:
            yield side
        finally:
            if self.kind.maps_answers:
                self.nursery.end(side)
            else:
                side.close()

    def inherit(self, side: Side) -> None:
        """Later children of the candidate start with what this one has compiled."""
        if self.kept is not None:
            inherited.collect(side.child.home, self.kept)

    def expect(self, *, candidates: int, ghost: Path | None = None) -> None:
        """So many children will be asked for soon; on the host one is made in no time."""
        if not self.kind.maps_answers:
            return
        for view, count in (
            (self._view(CANDIDATE), candidates),
            (self._view(CANDIDATE, ghost), int(ghost is not None)),
        ):
            self.nursery.order(view, lambda view=view: self._child(view), count)  # type: ignore[misc]  # bound now

    def candidate(self, source: str, *, watched: bool = False, ghost: Path | None = None) -> Side:
        """A child that has executed the candidate's source. Raises SideFault.

        From `ghost` it loads kernels that do nothing.
        """
        side = self._side(CANDIDATE, ghost)
        try:
            if watched:
                side.watch()
            lanes = None if self.job.device.timed else emulator.lanes(self.job.device)
            side.load(source, folder=ghost or self.own, kept=self.kept, lanes=lanes)
        except BaseException:
            side.close()
            raise
        return side

    def baseline(self, form: str) -> Side:
        """A child that has executed the operator's source. Raises SideFault."""
        side = self._side(form)
        try:
            side.load(self.job.operator.source, class_name="Model")
        except BaseException:
            side.close()
            raise
        return side

    def _view(self, name: str, ghost: Path | None = None) -> View:
        """What a child of this name sees beside the system's files."""
        compiled = name == COMPILED
        readable = {
            CANDIDATE: (ghost or self.own, self.kept, self.cache / WARM),
            COMPILED: (self.cache / WARM,),
        }
        return View(
            readable=tuple(str(p) for p in readable.get(name, ()) if p is not None),
            writable=(str(self.cache / "inductor"),) if compiled else (),
            nodes=self.kind.nodes(),
        )

    def _side(self, name: str, ghost: Path | None = None) -> Side:
        view = self._view(name, ghost)
        side = self.nursery.take(view, lambda: self._child(view))
        side.name = name
        side.allowance = self.candidates if name == CANDIDATE else self.baselines
        return side

    def _child(self, view: View) -> Side:
        """A child without a source yet, with its context on the device."""
        child = self.zygote.child(self.limits(), view)
        self.pids.append(child.pid)
        side = Side(child, name="", allowance=self.baselines, kind=self.kind)
        if self.kind.maps_answers:
            self._begin(side)
        return side

    def _begin(self, side: Side) -> None:
        """Raises MachineError: no foreign code is in there yet."""
        reduced = self.job.contract.policy is not Policy.STRICT
        try:
            side.begin(reduced=reduced)
        except SideFault as fault:
            side.close()
            if self.left_s <= 0:
                raise
            name = self.job.device.name
            raise MachineError(f"a child gets no context on {name}: {fault}") from fault
