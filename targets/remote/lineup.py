"""The sides of the next pairs, set up before they are timed.

On a device a context takes 0.15 s and a compiled baseline 0.1 s more, in each process anew: as much
as is timed. So there the sides of several pairs are set up at once, beside the checks of the
candidate, and stand still until their turn; on the host those of one pair, when it is due.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress

from data.errors import MachineError
from targets.remote.output import SideFault
from targets.remote.side import Side

PAIRS = 3
"""At most, at once."""


class Lineup:
    """Sides by name, as many of each as pairs are likely to follow."""

    def __init__(self, makers: Mapping[str, Callable[[], Side]], *, ahead: int) -> None:
        """With `ahead` pairs at once, at least one."""
        self._makers, self._ahead = makers, ahead
        self._pool = ThreadPoolExecutor(ahead * len(makers), thread_name_prefix="lineup")
        self._made: dict[str, deque[Future[Side]]] = {name: deque() for name in makers}

    def begin(self, pairs: int, names: Iterable[str] | None = None) -> int:
        """Sides for so many pairs are set up from now on; how many of other names these lack."""
        pairs = min(pairs, self._ahead)
        for name in self._makers if names is None else names:
            made = self._made[name]
            for _ in range(len(made), pairs):
                made.append(self._pool.submit(self._still, name))
        return sum(max(0, pairs - len(made)) for made in self._made.values())

    def _still(self, name: str) -> Side:
        side = self._makers[name]()
        try:
            side.freeze()
        except BaseException:
            side.close()
            raise
        return side

    def take(self, stack: ExitStack, pairs: int) -> list[Side]:
        """The sides of the next of `pairs` pairs, closed with the stack; no other is being made.

        Raises what making the first faulty one of them raised.
        """
        if not all(self._made.values()):
            self.begin(pairs)
        self._settle()
        taken = [made.popleft() for made in self._made.values()]
        sides = [stack.enter_context(t.result()) for t in taken if t.exception() is None]
        for one in taken:
            one.result()
        for side in sides:
            side.thaw()
        return sides

    def _settle(self) -> None:
        for made in self._made.values():
            for one in made:
                one.exception()

    def close(self) -> None:
        """Ends the sides that nobody took."""
        for made in self._made.values():
            for one in made:
                if not one.cancel():
                    with suppress(MachineError, SideFault):
                        one.result().close()
            made.clear()
        self._pool.shutdown()
