import pytest

from data.errors import BudgetError, MachineError, ModelError
from tasks.retry import PAUSES_S, patiently


class Flaky:
    """Fails with the given errors in turn, then answers."""

    def __init__(self, *errors: Exception):
        self.errors = list(errors)
        self.tries = 0
        self.slept: list[float] = []

    async def __call__(self) -> str:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_a_dead_host_is_tried_again() -> None:
    """A machine that answers the third time costs two pauses."""
    flaky = Flaky(MachineError("no route"), MachineError("no route"))
    assert await patiently(flaky, sleep=flaky.sleep) == "answer"
    assert len(flaky.slept) == 2
    assert flaky.slept[0] >= PAUSES_S[0]


async def test_retry_after_is_obeyed() -> None:
    """A provider's own pause is a lower bound."""
    flaky = Flaky(ModelError("busy", retryable=True, retry_after_s=60))
    await patiently(flaky, sleep=flaky.sleep)
    assert flaky.slept[0] >= 60


@pytest.mark.parametrize(
    "error",
    [
        ModelError("key refused"),
        BudgetError("spent"),
        ValueError("bug"),
        MachineError("the host key has changed", retryable=False),
    ],
)
async def test_what_cannot_pass_is_not_repeated(error: Exception) -> None:
    """A refused key, a changed host, a spent budget and our own bugs are raised at once."""
    flaky = Flaky(error)
    with pytest.raises(type(error)):
        await patiently(flaky, sleep=flaky.sleep)
    assert flaky.tries == 1


async def test_it_gives_up() -> None:
    """After the last pause the world's fault is the caller's to report."""
    flaky = Flaky(*[MachineError("gone")] * 9)
    with pytest.raises(MachineError):
        await patiently(flaky, sleep=flaky.sleep)
    assert flaky.tries == len(PAUSES_S) + 1
