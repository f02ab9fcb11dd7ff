"""The judge's warm process, started once for all tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.targets.rig import Rig

collect_ignore = ["adversarial"]
"""Neither imported nor read for doctests: they run behind walls only."""


@pytest.fixture(scope="session")
def rig(request: pytest.FixtureRequest, warmed: Callable[[Path], Path]) -> Iterator[Rig]:
    """What the compiler made stays in pytest's cache."""
    cache = request.config.cache
    assert cache is not None
    made = Rig(warmed(Path(cache.mkdir("judge"))))
    yield made
    made.zygote.close()
