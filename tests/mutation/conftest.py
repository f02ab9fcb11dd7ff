"""A warm process with a cache of its own: what others built is not there, and the other way."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.targets.rig import Rig


@pytest.fixture(scope="session")
def rig(request: pytest.FixtureRequest, warmed: Callable[[Path], Path]) -> Iterator[Rig]:
    cache = request.config.cache
    assert cache is not None
    made = Rig(warmed(Path(cache.mkdir("mutation"))))
    yield made
    made.zygote.close()
