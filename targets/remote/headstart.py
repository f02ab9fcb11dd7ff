"""What comes after the checks of a candidate on a device, made ready beside them.

A context there takes 0.15 s and a compiled baseline 0.1 s more, in each process anew. On the host,
where a child is made in no time, nothing is made ahead.
"""

from collections.abc import Sequence
from pathlib import Path

from targets.remote.baseline import Choice, known
from targets.remote.bench import Bench
from targets.remote.timing import Race


class HeadStart:
    """Children of the trace, and sides of the first pairs of the first shape."""

    def __init__(self, bench: Bench, shapes: Sequence[str], ghost: Path | None) -> None:
        self.ghost = ghost
        """A folder of the candidate's kernels that do nothing."""
        self._bench, self._shapes = bench, shapes
        self._race: Race | None = None

    def begin(self) -> None:
        """The candidate was right once: most that are have come to stay."""
        if not self._bench.kind.maps_answers:
            return
        self._bench.expect(candidates=1, ghost=self.ghost)
        choice = known(self._bench, self._shapes[0]) if self._shapes else None
        if choice is not None:
            self._race = Race(self._bench, self._shapes[0], choice)
            self._bench.expect(candidates=self._race.begin(baselines=True))

    def go_on(self) -> None:
        """It was right in all draws: its own sides."""
        if self._race is not None:
            self._race.begin(baselines=False)

    def race_of(self, shape: str, choice: Choice) -> Race:
        """The one that has begun, or a new one."""
        race, self._race = self._race, None
        if race is not None:
            if (race.shape, race.choice) == (shape, choice):
                return race
            race.close()
        return Race(self._bench, shape, choice)

    def close(self) -> None:
        """Ends sides that nobody took."""
        if self._race is not None:
            self._race.close()
