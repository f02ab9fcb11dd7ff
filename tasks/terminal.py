"""How a campaign looks on a terminal: progress on stderr, the table on stdout."""

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from data.errors import LimitError
from data.records import Iteration, Pair
from tasks import pages
from tasks.campaign import PairResult
from tasks.running import said

MACHINES = logging.getLogger("kforge")
"""What machines have to say while a campaign waits: who holds the device, what was restarted."""

WIDE = 200
"""Columns where nobody wraps: a pipe or a file."""


class Lines(logging.Handler):
    """Log records as lines among the progress."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.getMessage())


@dataclass(kw_only=True)
class Terminal:
    """Listens to a campaign: bars on a terminal, one line a step elsewhere."""

    total: int
    """Pairs of the campaign."""
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    results: list[PairResult] = field(default_factory=list)
    new_steps: int = 0
    """Steps that were put on record since the start."""

    def __post_init__(self) -> None:
        self._began = datetime.now(UTC)
        self._best: dict[str, float] = {}
        self._rows: dict[str, TaskID] = {}
        self._console = Console(file=self.stream, highlight=False, soft_wrap=True)
        self._lines = Lines(self.say)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[said]}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> Self:
        MACHINES.addHandler(self._lines)
        MACHINES.setLevel(logging.INFO)
        self._bars.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._bars.stop()
        MACHINES.removeHandler(self._lines)

    def say(self, text: str) -> None:
        """A line among the progress."""
        self._console.print(text, markup=False)

    def started(self, pair: Pair) -> None:
        most = pair.settings.steps + 1
        self._rows[pair.name] = self._bars.add_task(pair.name, total=most, said="admission")
        self._plain(f"{pair.name}: started")

    def stepped(self, iteration: Iteration) -> None:
        name = f"{iteration.operator.name}@{iteration.device.name}"
        if iteration.right and iteration.speedup is not None:
            self._best[name] = max(iteration.speedup, self._best.get(name, 0.0))
        best = f", best {self._best[name]:.2f}x" if name in self._best else ""
        verdict = f"{iteration.verdict.value} {pages.speed(iteration)}".removesuffix(" -")
        move = f"{iteration.move.step} {iteration.move.mode} {iteration.move.lineage}".strip()
        if name in self._rows:
            self._bars.update(self._rows[name], advance=1, said=f"{move}: {verdict}{best}")
        if self._fresh(iteration):
            self.new_steps += 1
            self._plain(f"{name}: step {move}: {verdict}{best}")

    def ended(self, result: PairResult) -> None:
        name = f"{result.operator}@{result.device}"
        self.results.append(result)
        speedup = pages.interval(result.speedup, result.speedup_low, result.speedup_high)
        known = " (all on record)" if result.new_steps == 0 else ""
        line = f"{name}: {result.verdict} {speedup}".removesuffix(" -")
        self._drop(name)
        self.say(f"[{len(self.results)}/{self.total}] {line}{known}")

    def failed(self, pair: Pair, error: BaseException) -> None:
        self._drop(pair.name)
        what = "not done" if isinstance(error, LimitError) else "failed"
        self.say(f"{pair.name}: {what}: {said(error)}")

    def _drop(self, name: str) -> None:
        """The bar of a pair that has ended gives way to its line."""
        if (row := self._rows.pop(name, None)) is not None:
            self._bars.remove_task(row)

    def _plain(self, line: str) -> None:
        if not self._console.is_terminal:
            self.say(line)

    def _fresh(self, iteration: Iteration) -> bool:
        """Whether the step ended after this campaign began: the others were on record."""
        try:
            ended = datetime.fromisoformat(iteration.ended_at)
        except ValueError:
            return True
        return (ended if ended.tzinfo else ended.replace(tzinfo=UTC)) >= self._began


def print_results(results: Sequence[PairResult]) -> None:
    """The campaign's table on stdout, as wide as its words need when it is no terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("operator", "device", "verdict", "baseline"):
        table.add_column(name, no_wrap=True)
    for name in ("speed-up (95 %)", "steps", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in pages.result_rows(results):
        table.add_row(*(str(cell) for cell in row.values()))
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=WIDE)
    console.print(table)
