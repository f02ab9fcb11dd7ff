"""`kforge admit`: which operators are meant, and how they reach the machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from data.errors import MachineError, MisuseError, OperatorError
from data.records import Admission, Contract, Device, Operator
from data.verdict import Outcome
from tasks.admission import Admitted, Terms, admissions, asked, at_once
from tests.data.samples import CPU

OPERATOR = "class Model: ...\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"
TERMS = Terms(device=CPU, contract=Contract(), timed=True)


class Bench:
    """A machine that refuses what is called `ill` and remembers what it was asked."""

    def __init__(self) -> None:
        self.timed: list[str] = []
        self.busy = self.most = 0
        self.device = asyncio.Lock()

    async def admit(
        self,
        operator: Operator,
        contract: Contract,
        device: Device,
        *,
        timed: bool = False,
        insist: bool = False,
    ) -> Admission:
        assert insist
        assert not timed or self.device.locked(), "timed without the device's lease"
        self.timed += [operator.name] if timed else []
        self.busy += not timed
        self.most = max(self.most, self.busy)
        await asyncio.sleep(0.01)
        self.busy -= not timed
        ill = operator.name == "ill"
        return Admission(outcome=Outcome.NOT_ADMITTED if ill else None, reason="so")

    @asynccontextmanager
    async def turn(self, device: Device) -> AsyncIterator[None]:
        async with self.device:
            yield


def operators(*names: str) -> tuple[Operator, ...]:
    return tuple(Operator(name=n, source=n) for n in names)


async def found(bench: Bench, *names: str) -> dict[str, Admitted]:
    return {a.operator.name: a async for a in admissions(bench, operators(*names), TERMS)}


async def test_probes_run_side_by_side_and_times_alone() -> None:
    """Every operator is answered; only an admitted one is timed, under the lease."""
    bench = Bench()
    answers = await found(bench, "a", "ill", "b", "c")
    assert sorted(answers) == ["a", "b", "c", "ill"]
    assert sorted(bench.timed) == ["a", "b", "c"]
    assert not answers["ill"].admission.admitted
    assert bench.most == at_once()


async def test_a_machine_that_fails_ends_it() -> None:
    """The world's fault is no verdict on an operator."""

    class Gone(Bench):
        async def admit(self, *_: object, **__: object) -> Admission:
            raise MachineError("unreachable", retryable=False)

    with pytest.raises(MachineError, match="unreachable"):
        await found(Gone(), "a", "b")


def test_suites_files_and_names_are_taken_together(tmp_path: Path) -> None:
    """Each operator once, in the order in which it was named."""
    folder = tmp_path / "level1"
    folder.mkdir()
    for name in ("2_b", "1_a"):
        (folder / f"{name}.py").write_text(f"{OPERATOR}# {name}\n")
    named = [o.name for o in asked([str(folder), "softmax", str(folder)])]
    assert named == ["level1_1_a", "level1_2_b", "softmax"]
    assert len(asked([])) > 40


@pytest.mark.parametrize("name", ["sofmax", "missing.jsonl", "missing.py"])
def test_an_unknown_name_is_misuse(name: str) -> None:
    """One sentence says what is not known."""
    with pytest.raises((MisuseError, OperatorError), match=name):
        asked([name])
