"""Where a pair goes: the least loaded machine, another one when that dies, none that is unsound."""

from pathlib import Path

import pytest

from data.errors import MachineError
from data.records import Device
from tasks.placement import Placement

ONE, TWO = (Device(name="d", target="cpu", vendor="any", arch="any", machine=m) for m in "ab")


def test_the_least_loaded_machine_is_taken() -> None:
    """Pairs spread; a place that was given back counts no longer."""
    placement = Placement()
    with placement.taken((ONE, TWO)) as first, placement.taken((ONE, TWO)) as second:
        assert (first.machine, second.machine) == ("a", "b")
        with placement.taken((ONE, TWO)) as third:
            assert third.machine == "a"
    with placement.taken((ONE, TWO)) as again:
        assert again.machine == "a"


def test_a_failing_machine_is_left_out_until_none_is_left() -> None:
    """The others take its pairs; when all fail, the error names each with its reason."""
    placement = Placement()
    placement.leave_out(ONE, "it died")
    with placement.taken((ONE, TWO)) as chosen:
        assert chosen.machine == "b"
    placement.leave_out(TWO, "it is wrong")
    words = r"no machine is left for 'd': a: it died; b: it is wrong"
    with pytest.raises(MachineError, match=words) as caught, placement.taken((ONE, TWO)):
        pass
    assert not caught.value.retryable


def test_a_place_is_a_machine_and_an_index() -> None:
    """A fault of one card leaves the other card of the host in use."""
    from dataclasses import replace

    placement = Placement()
    placement.leave_out(ONE, "broken card")
    assert placement.fault(replace(ONE, index=1)) is None
    assert placement.fault(ONE) == "broken card"


async def test_work_moves_when_its_machine_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed on one machine is done on the next, which is the only one from then on."""
    from tasks import placing

    (tmp_path / "devices.toml").write_text(
        "[[device]]\nname = 'd'\ntarget = 'cpu'\narch = 'any'\nindices = [0, 1]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(placing, "PLACEMENT", Placement())
    seen: list[int] = []

    async def work(device: Device) -> str:
        seen.append(device.index)
        if device.index == 0:
            raise MachineError("the host died")
        return "done"

    device = Device(name="d", target="cpu", vendor="cpu", arch="any")
    assert await placing.somewhere(device, tmp_path, work) == "done"
    assert await placing.somewhere(device, tmp_path, work) == "done"
    assert seen == [0, 1, 1]


async def test_a_ruling_moves_when_its_machine_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next machine admits the operator for itself; one that works keeps what it admitted."""
    from tasks import placing
    from tasks.judgement import Bench, Ruling

    (tmp_path / "devices.toml").write_text(
        "[[device]]\nname = 'd'\ntarget = 'cpu'\narch = 'any'\nindices = [0, 1]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(placing, "PLACEMENT", Placement())
    seen: list[Bench] = []

    async def rule(bench: Bench) -> Ruling:
        seen.append(bench)
        if bench.device.index == 0:
            raise MachineError("the host died")
        return Ruling(
            candidate="c",
            operator="relu",
            device="d",
            verdict="CORRECT",
            reason="",
            contract="strict",
            execution="hardware",
        )

    placed = placing.benches(Device(name="d", target="cpu", vendor="cpu", arch="any"), tmp_path)
    assert [(await placed(rule)).verdict for _ in range(2)] == ["CORRECT"] * 2
    assert [b.device.index for b in seen] == [0, 1, 1]
    assert seen[1] is seen[2]
