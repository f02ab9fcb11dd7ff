"""Children that are made ready, and others that are ended, while the judge does something else.

A context on a device takes 0.2 to 0.6 s, so those of the first pair are made beside the trace (more
at once would delay the trace by what they save later), those of the next one beside the warm-up of
a pair. Nothing is made or ended while times are taken.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress

from data.errors import MachineError
from targets.remote.output import SideFault
from targets.remote.sandbox import View
from targets.remote.side import Side

AT_ONCE = 8


def together(
    stack: ExitStack, makers: Sequence[Callable[[], Side]], *, at_once: bool
) -> list[Side]:
    """What each maker makes, in order, closed with the stack; raises what the first of them raised.

    At once on a device, where a child spends 0.4 s on its first call.
    """
    if not at_once:
        return [stack.enter_context(make()) for make in makers]
    with ThreadPoolExecutor(len(makers)) as pool:
        making = [pool.submit(make) for make in makers]
    made = [stack.enter_context(m.result()) for m in making if m.exception() is None]
    for failed in making:
        failed.result()
    return made


class Nursery:
    """Ordered children by what they may see."""

    def __init__(self) -> None:
        self._makers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="nursery")
        self._ordered: dict[View, deque[Future[Side]]] = {}

    def order(self, view: View, make: Callable[[], Side], count: int) -> None:
        """Starts to make them; whoever takes one waits for it."""
        queue = self._ordered.setdefault(view, deque())
        queue.extend(self._makers.submit(make) for _ in range(count))

    def take(self, view: View, make: Callable[[], Side]) -> Side:
        """An ordered child, or one made now. Raises what making it raised."""
        queue = self._ordered.get(view)
        return queue.popleft().result() if queue else make()

    def settle(self) -> None:
        """Waits until nothing is being made: a timing wants an idle machine."""
        for queue in self._ordered.values():
            for future in queue:
                future.exception()

    def close(self) -> None:
        """Ends the children that nobody took."""
        for queue in self._ordered.values():
            for future in queue:
                if not future.cancel():
                    with suppress(MachineError, SideFault):
                        future.result().close()
        self._ordered.clear()
        self._makers.shutdown()


class Endings:
    """Sides of a pair that is over: each takes the device 0.1 s to let go of."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="endings")
        self._stack, self._ended = ExitStack(), list[Future[str]]()

    def begin(self, sides: Sequence[Side], stack: ExitStack) -> None:
        """Their processes end from now on; `stack` closes them when that is settled."""
        self._stack = stack
        self._ended = [self._pool.submit(side.child.end) for side in sides]

    def settle(self) -> None:
        """Waits until they are gone, and closes them: in the thread that has the device's context.

        Raises MachineError when one cannot be ended.
        """
        ended, self._ended = self._ended, []
        with self._stack:
            for one in ended:
                one.result()

    def close(self) -> None:
        """Settles, and ends the thread."""
        try:
            self.settle()
        finally:
            self._pool.shutdown()
