"""One process a pair: a second one would do the same steps again."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from data.errors import LedgerError, MisuseError
from data.records import Pair
from data.store import folder_of


@contextmanager
def claimed(runs: Path, pair: Pair) -> Iterator[None]:
    """Holds the pair while it is ported; the kernel lets go of it however the process ends.

    MisuseError when another process holds it, LedgerError when the folder cannot be written.
    """
    place = folder_of(pair.run_id, pair.operator.hash, pair.device.name)
    path = runs / "claims" / f"{place}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        message = f"cannot write in {runs}: {error.strerror}; free space or choose another --runs"
        raise LedgerError(message) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = (
                f"{pair.name} of run {pair.run_id} is being ported by another process; wait for it"
            )
            raise MisuseError(message) from error
        yield
