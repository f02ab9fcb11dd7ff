"""Processes that work on a ledger and are killed while they do.

Run as `python -m tests.data.ledger_worker VERB ROOT ...`. The process that forks never uses
pyarrow itself, so that its children are free to.
"""

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from data.records import Operator
from data.store import Ledger
from data.volumes import gather
from tests.data.samples import RELU, call, confirmed, key

PAIR = ("run", RELU.hash, "cpu")
CALLS = frozenset({"open", "write", "replace", "unlink", "mkdir"})
"""The C functions that change the disk."""


def append(root: Path, start: int, count: int) -> None:
    """Records steps start ... start + count - 1."""
    for step in range(start, start + count):
        Ledger(root).append(confirmed(step, 1.5))


def compact(root: Path, until: int) -> None:
    """Compacts until that many steps are on record and merged."""
    while len(Ledger(root).history(*PAIR)) < until:
        Ledger(root).compact(*PAIR)
    Ledger(root).compact(*PAIR)


def loop(root: Path, log: Path) -> None:
    """Appends for ever, compacts each third step; writes every step recorded to `log`."""
    ledger = Ledger(root)
    step = max((i.move.step for i in ledger.history(*PAIR)), default=-1) + 1
    with log.open("a") as seen:
        while True:
            ledger.append(confirmed(step, 1.5))
            print(step, file=seen, flush=True)
            if step % 3 == 0:
                ledger.compact(*PAIR)
            step += 1


def kill_at_random(root: Path, log: Path, times: int) -> None:
    """Kills `loop` that many times at a random moment and starts it again."""
    for _ in range(times):
        before = log.stat().st_size if log.exists() else 0
        child = _forked(lambda: loop(root, log))
        while not log.exists() or log.stat().st_size == before:
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.2))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def storm(root: Path, logs: Path, workers: int, each: int) -> None:
    """Workers append `each` steps to a pair of their own and one gathers, all killed at random.

    Those that are killed start again; `logs/N` holds the steps that worker N was told are recorded.
    """
    todo = {n: _forked(partial(storming, root, logs / str(n), n, each)) for n in range(workers)}
    gatherer = _forked(lambda: _gather_on(root))
    while todo:
        time.sleep(random.uniform(0.01, 0.1))
        for n, child in list(todo.items()):
            if os.waitpid(child, os.WNOHANG)[0]:
                del todo[n]
        for n in random.sample(sorted(todo), min(len(todo), 1)):
            _kill(todo[n])
            todo[n] = _forked(partial(storming, root, logs / str(n), n, each))
        if random.random() < 0.05:  # some of its passes are to end
            _kill(gatherer)
            gatherer = _forked(lambda: _gather_on(root))
    _kill(gatherer)


def storming(root: Path, log: Path, worker: int, each: int) -> None:
    """Records the steps that `log` lacks and writes them there."""
    done = len(log.read_text().splitlines()) if log.exists() else 0
    with log.open("a") as seen:
        for step in range(done, each):
            Ledger(root).append(confirmed(step, 1.5, operator=storm_operator(worker)))
            os.write(seen.fileno(), f"{step}\n".encode())


def storm_operator(worker: int) -> Operator:
    """What a worker of the storm records."""
    return Operator(name=f"o{worker}", source=f"o{worker}")


def _gather_on(root: Path) -> None:
    while True:
        gather(root)
        time.sleep(0.2)


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def kill_everywhere(template: Path, folder: Path, every: int) -> None:
    """Runs each of VERBS from `template`, killed before call 0, 1, 2, ... or each `every`-th.

    `folder/VERB-N` is what the N-th kill left. Ends a verb when it survives.
    """
    for name, verb in VERBS.items():
        for count in range(0, 1000, every if name == "gather" else 1):
            root = folder / f"{name}-{count}"
            shutil.copytree(template, root)
            child = _forked(lambda: _killed_before(count, lambda: verb(Ledger(root))))  # noqa: B023 - runs at once
            if os.waitpid(child, 0)[1] == 0:
                break


VERBS: dict[str, Callable[[Ledger], object]] = {
    "append": lambda ledger: ledger.append(confirmed(3, 1.5)),
    "call": lambda ledger: ledger.append_call(key(3), call()),
    "compact": lambda ledger: ledger.compact(*PAIR),
    "gather": lambda ledger: gather(ledger.root),
}


def _forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def _killed_before(count: int, work: Callable[[], object]) -> None:
    left = count

    def watch(_frame: object, event: str, function: object) -> None:
        nonlocal left
        if event == "c_call" and getattr(function, "__name__", "") in CALLS:
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.setprofile(watch)
    work()
    sys.setprofile(None)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["append", root, start, count]:
            append(Path(root), int(start), int(count))
        case ["compact", root, until]:
            compact(Path(root), int(until))
        case ["kill-at-random", root, log, times]:
            kill_at_random(Path(root), Path(log), int(times))
        case ["storm", root, logs, workers, each]:
            storm(Path(root), Path(logs), int(workers), int(each))
        case ["kill-everywhere", template, folder, every]:
            kill_everywhere(Path(template), Path(folder), int(every))
        case _:
            sys.exit(2)
