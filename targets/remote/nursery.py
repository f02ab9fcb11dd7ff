"""Children that are made ready, and others that are ended, while the judge does something else.

A device needs 0.15 s for a context and 0.1 s to let go of one. So those of the trace are made
beside the checks, and what is over ends beside what comes next. Nothing is made or ended while
times are taken.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress

from data.errors import MachineError
from targets.remote.output import SideFault
from targets.remote.sandbox import View
from targets.remote.side import Side

AT_ONCE = 4
"""The driver makes one context after the other: with more, all come late."""


class Nursery:
    """Ordered children by what they may see, and sides that end."""

    def __init__(self) -> None:
        self._makers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="nursery")
        self._enders = ThreadPoolExecutor(1, thread_name_prefix="ending")
        self._ordered: dict[View, deque[Future[Side]]] = {}
        self._ending: list[tuple[Side, Future[str]]] = []

    def order(self, view: View, make: Callable[[], Side], count: int) -> None:
        """Starts to make them; whoever takes one waits for it."""
        queue = self._ordered.setdefault(view, deque())
        queue.extend(self._makers.submit(make) for _ in range(count))

    def take(self, view: View, make: Callable[[], Side]) -> Side:
        """An ordered child, or one made now. Raises what making it raised."""
        queue = self._ordered.get(view)
        return queue.popleft().result() if queue else make()

    def end(self, side: Side) -> None:
        """Nobody needs the side any more: its process ends from now on."""
        side.child.kill()
        self._ending.append((side, self._enders.submit(side.child.end)))

    def settle(self) -> None:
        """Waits until nothing is being made or ended: a timing wants an idle machine.

        Raises MachineError when something cannot be ended. What has ended is closed here, in the
        thread that has the device's context.
        """
        for queue in self._ordered.values():
            for future in queue:
                future.exception()
        ending, self._ending = self._ending, []
        with ExitStack() as stack:
            for side, ended in ending:
                stack.callback(side.close)
                stack.callback(ended.result)

    def close(self) -> None:
        """Ends the children that nobody took."""
        for queue in self._ordered.values():
            for future in queue:
                if not future.cancel():
                    with suppress(MachineError, SideFault):
                        self.end(future.result())
        self._ordered.clear()
        try:
            self.settle()
        finally:
            self._makers.shutdown()
            self._enders.shutdown()
