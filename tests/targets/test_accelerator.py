"""The seam between judge and device: answers that are copied instead of read, on the host."""

import threading

import pytest
import torch

from data.errors import MachineError
from data.records import Device, RunStatus
from targets.remote import baseline, heat, hygiene, measure
from targets.remote.accelerator import HOST, Host, Staged, kind, kind_of_device
from targets.remote.arena import Arena
from targets.remote.bench import COMPILED, EAGER
from targets.remote.gate import Gate
from targets.remote.memory import HostMemory, TensorMemory
from targets.remote.pairs import PairTimes, device_form, spread, unsure
from tests.targets.rig import ADD, HONEST, Rig
from tests.targets.test_measure import REAL, add

DAWDLER = ADD.replace("import torch\n", "import time\nimport torch\n", 1).replace(
    "return", "torch.compiler.is_compiling() or time.sleep(0.02)\n        return", 1
)
"""Eager waits 20 ms a call."""


@pytest.fixture
def staged(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A judge that takes the processor for such a device."""
    monkeypatch.setattr(measure, "kind_of_device", lambda _: Staged())
    return rig


def tensor_memory(size: int) -> TensorMemory:
    """What a device's memory looks like, on the host."""
    return TensorMemory(torch.zeros(size, dtype=torch.uint8), lambda: None)


def test_an_emulated_device_has_its_tensors_on_the_host() -> None:
    """Only hardware has memory of its own."""
    nvidia = Device(name="n", target="nvidia", vendor="nvidia", arch="sm_90", execution="emulated")
    assert kind_of_device(nvidia) is HOST
    assert kind("cpu", 0) is HOST


@pytest.mark.parametrize("new", [tensor_memory, HOST.new])
def test_writes_and_spots_are_the_same_in_every_memory(new) -> None:  # type: ignore[no-untyped-def]
    """The patch of the start signal and the pieces at the end mean the same bytes everywhere."""
    arena = Arena.holding([torch.arange(8.0), torch.arange(6).view(2, 3).t()], new)
    second = arena.places[1].offset
    arena.memory.writer([(4, torch.tensor([9.0]).numpy().tobytes()), (second, b"\7")])()
    assert arena.tensors[0].tolist() == [0, 9, 2, 3, 4, 5, 6, 7]
    assert int(arena.tensors[1][0, 0]) == 7
    read = arena.memory.reader([(second, 2), (4, 4)])
    assert read() == b"\7\0" + torch.tensor([9.0]).numpy().tobytes()
    other = Arena.holding([t.clone() for t in arena.tensors], new)
    assert other.same(0, arena)
    other.tensors[0][0] = 1.0
    assert not other.same(0, arena)
    arena.free()
    other.free()


def test_an_honest_kernel_passes_where_answers_are_copied(staged: Rig) -> None:
    """Right, timed, and what the copies cost is taken off its time once, and never again."""
    result = staged.measure(HONEST, pairs=2, deadline_s=90.0, thorough=True)
    assert result.status is RunStatus.RAN, result.detail
    (timing,) = result.timings
    assert timing.low <= timing.ratio <= timing.high
    assert timing.null_us == 0


def test_memory_is_freed_where_the_context_is(staged: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides of a pair end while the next one warms up, yet a device's context is one thread's."""
    threads = set()
    free = HostMemory.free

    def freed(memory: HostMemory) -> None:
        threads.add(threading.get_ident())
        free(memory)

    monkeypatch.setattr(HostMemory, "free", freed)
    result = staged.measure(HONEST, pairs=3, deadline_s=90.0, thorough=True)
    assert result.status is RunStatus.RAN, result.detail
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize(
    ("body", "header", "status"),
    [
        ("return O[0] if O else O.append(x + 2 * y) or O[0]", "O = []", RunStatus.WRONG),
        (f"{REAL}\nreturn o[:32]", "", RunStatus.BAD_STRUCTURE),
        (f"{REAL}\nreturn o.half()", "", RunStatus.BAD_STRUCTURE),
        (f"{REAL}\no[-1, -1] = 0\nreturn o", "", RunStatus.WRONG),
        ("x += 2 * y\nreturn x", "", RunStatus.INPUT_CHANGED),
        ("import os; os._exit(0)", "", RunStatus.FORGED),
    ],
)
def test_a_fault_is_found_where_answers_are_copied(
    staged: Rig, body: str, header: str, status: RunStatus
) -> None:
    """The copy hides nothing: stale, too small, of another type, cut, in place, gone."""
    result = staged.measure(add(body, header))
    assert result.status is status, result.detail


def test_an_answer_that_nobody_copied_is_not_there(staged: Rig) -> None:
    """A driver that only says "done" leaves the judge's own NaN."""
    patch = "import sys\nsys.modules['targets.remote.child']._copy_out = lambda *_: None"
    result = staged.measure(add(f"{REAL}\nreturn o", patch))
    assert result.status is RunStatus.WRONG, result.detail


def test_the_baseline_is_chosen_by_the_times_of_the_race(
    staged: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches from the host may favour the form that is slower on the device."""
    monkeypatch.setattr(baseline, "known", lambda *_: None)  # of an earlier run of the tests
    monkeypatch.setattr(baseline, "_times", lambda _: {EAGER: 2e3, COMPILED: 4e3})
    monkeypatch.setattr(heat, "queueable", lambda _side, calls, _fresh: calls)
    run = staged.measure(HONEST, DAWDLER, pairs=2, deadline_s=90.0)
    (timing,) = run.timings
    assert timing.baseline == COMPILED, run.review
    assert timing.others_us[EAGER] > 19e3


def test_without_a_queue_both_forms_are_timed_with_their_launches(
    staged: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that cannot be given calls ahead: so will the race."""
    launches = {EAGER: 4e3, COMPILED: 2e3}
    monkeypatch.setattr(baseline, "known", lambda *_: None)
    monkeypatch.setattr(baseline, "_times", lambda _: launches)
    run = staged.measure(HONEST, DAWDLER, pairs=2, deadline_s=90.0)
    (timing,) = run.timings
    assert timing.baseline == COMPILED, run.review
    assert timing.others_us == {EAGER: launches[EAGER]}


def test_short_calls_fill_long_batches_of_different_inputs() -> None:
    """A change of process costs a fixed time, so that a message must be long."""
    answer = [torch.empty(1 << 10)]
    short, long = device_form(2e-5, 1 << 20, answer), device_form(2e-2, 1 << 20, answer)
    assert short.batch >= 100
    assert short.sets == short.batch
    assert long.batch == 1
    assert long.slots
    assert device_form(1e-4, 4 << 30, answer).batch == 1


def test_the_null_call_is_taken_off_both_sides() -> None:
    """And never more of a time than nearly all."""
    times = PairTimes(
        blocks={"eager": [3.0, 3.0], "candidate": [2.0, 2.0]},
        raw={"eager": [3.0] * 4, "candidate": [2.0, 2.0, 2.0, 1.0]},
        nulls={"eager": [1.0], "candidate": [1.0]},
    )
    assert times.ratio("eager", "candidate") == pytest.approx(2.0)
    assert times.each("candidate") == pytest.approx([1.0, 1.0, 1.0, 0.02])


def pair(candidate: float, null: float = 1.0) -> PairTimes:
    """Seconds a call of a candidate and its null call, beside an eager one of 3 s and 1 s."""
    return PairTimes(
        blocks={"eager": [3.0, 3.0], "candidate": [candidate] * 2},
        raw={"eager": [3.0, 3.0], "candidate": [candidate] * 2},
        nulls={"eager": [1.0], "candidate": [null]},
    )


def test_a_candidate_that_slows_its_null_call_gains_nothing() -> None:
    """Its driver is in its hands; what it wins there only widens the interval."""
    times = pair(3.0, null=2.0)
    assert times.ratio("eager", "candidate") == pytest.approx(1.0)
    _, low, high = spread([times] * 3, "eager")
    assert low < 0.7
    assert high > 1.4


def test_null_calls_that_agree_leave_the_interval_as_it_is() -> None:
    """The copies are the same on both sides."""
    _, low, high = spread([pair(2.0)] * 3, "eager")
    assert low == pytest.approx(2.0)
    assert high == pytest.approx(2.0)


def test_times_below_twice_the_null_call_are_unsure() -> None:
    """Where calls cannot be queued ahead, such a ratio has said 1.16 of equal kernels."""
    assert unsure([pair(2.0)], "eager")
    assert not unsure([pair(3.5)], "eager")


def test_a_gate_opens_for_all_messages_so_far_and_no_later_one() -> None:
    """A word left open would let the next message run before its contents are there."""
    gate = Gate()
    assert gate.shut() == 1
    gate.open()
    assert gate.shut() == 2
    assert gate.memory.flat[:4].tolist() == [1, 0, 0, 0]
    gate.memory.close()


class Neglected(Staged):
    """A device that forgets, leaks or hangs."""

    def __init__(self, *, leaks: int = 0, well: bool = True, holder: int = 0) -> None:
        self.leaks, self.well, self.holder = leaks, well, holder
        self._used = 0

    def used_bytes(self) -> int:
        self._used += self.leaks
        return self._used

    def users(self) -> frozenset[int]:
        return frozenset({self.holder})

    def healthy(self) -> bool:
        return self.well


@pytest.mark.parametrize(
    "device", [Neglected(leaks=2 << 30), Neglected(well=False), Neglected(holder=77)]
)
def test_what_a_candidate_leaves_on_the_device_is_the_machines_fault(
    device: Neglected, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next candidate must not pay for it."""
    monkeypatch.setattr(hygiene, "GONE_S", 0.05)
    with pytest.raises(MachineError), hygiene.watched(device, [77]):
        pass
    with hygiene.watched(Neglected(), [77]):
        pass
    with hygiene.watched(Host(), [77]):
        pass
