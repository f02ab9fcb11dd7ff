"""One Prefect server for the tests that need one, in a folder of their own."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows import server


@pytest.fixture(scope="session")
def runs() -> Iterator[Path]:
    """A ledger folder whose server runs; both are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="kforge-prefect-"))
    try:
        server.ensure(folder)
        yield folder
    finally:
        server.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)
