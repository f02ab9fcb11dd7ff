"""The clock that counts."""

import math
import os

import pytest
import torch

from data.errors import MachineError
from data.records import BuildResult, Contract, LibraryPolicy, Operator, RunStatus
from data.verdict import Verdict, judge
from targets.remote.arena import Arena
from targets.remote.contents import Contents, written
from targets.remote.operator import LoadedOperator
from targets.remote.pairs import CANDIDATE, PairTimes, form_of, interval, settled
from tests.targets.rig import ADD, HONEST, Rig
from tests.targets.test_measure import REAL, add


def test_the_interval_is_students() -> None:
    """Five pairs, t = 2.78."""
    middle, low, high = interval([1.0, 1.1, 1.2, 1.1, 1.0])
    logs = [math.log(v) for v in (1.0, 1.1, 1.2, 1.1, 1.0)]
    mean = sum(logs) / 5
    sd = math.sqrt(sum((v - mean) ** 2 for v in logs) / 4)
    assert middle == pytest.approx(1.1)
    assert high == pytest.approx(math.exp(mean + 2.78 * sd / math.sqrt(5)))
    assert low < 1.1 < high


def pair(ratio: float, *, slow: int = 0, of: int = 12) -> PairTimes:
    """Of a candidate that is `ratio` times faster; so many messages of each side are disturbed."""
    times = {"eager": ratio, CANDIDATE: 1.0}
    raw = {name: [2.0 * s if n < slow else s for n in range(of)] for name, s in times.items()}
    return PairTimes(blocks=raw, raw=raw)


def test_a_stolen_core_does_not_change_a_ratio() -> None:
    """Half of the messages of one side alone take twice as long: the others tell."""
    calm, disturbed = pair(1.0), pair(1.0, slow=6)
    calm.raw["eager"] = disturbed.raw["eager"]
    assert calm.ratio("eager", CANDIDATE) == 1.0
    assert pair(1.3, slow=3).ratio("eager", CANDIDATE) == pytest.approx(1.3)


SCATTERED, CALM = (1.3, 1.15, 1.5, 1.4, 1.25), (1.3, 1.31, 1.29, 1.3, 1.3)


@pytest.mark.parametrize(
    ("first", "second", "told", "open_"),
    [
        (SCATTERED, (1.0, 0.9, 1.2, 1.1, 0.95), (1.0, 0.9, 1.2, 1.1, 0.95), False),
        (SCATTERED, CALM, CALM, False),
        (SCATTERED, CALM[:2], SCATTERED, True),
        (CALM, (), CALM, False),
        ((0.9, 0.75, 1.1, 1.0, 0.85), (), (0.9, 0.75, 1.1, 1.0, 0.85), False),
        ((1.3,), (), (1.3,), False),
        ((1.05, 1.04, 1.07, 1.05, 1.06), (1.0,) * 5, (1.0,) * 5, False),
    ],
)
def test_a_gain_that_may_be_chance_must_come_twice(
    first: tuple[float, ...], second: tuple[float, ...], told: tuple[float, ...], *, open_: bool
) -> None:
    """Fresh pairs alone decide, so that lucky ones do not count; without time it stays open."""
    turns = iter([[pair(r) for r in first], [pair(r) for r in second]])
    pairs, unsettled = settled(lambda: next(turns), "eager")
    assert [p.ratio("eager", CANDIDATE) for p in pairs] == pytest.approx(told)
    assert unsettled is open_
    assert (next(turns, None) is None) is (told != first or unsettled)


def test_short_calls_go_in_batches_of_different_inputs() -> None:
    """Below a millisecond messages would count more than calls."""
    short = form_of(1e-4, 1 << 16, [torch.zeros(64)])
    long = form_of(5e-3, 1 << 16, [torch.zeros(64)])
    assert short.batch > 8
    assert short.sets >= short.batch
    assert (long.batch, long.sets) == (1, 3)
    assert form_of(5e-3, 100 << 20, [torch.zeros(64)]).sets == 1


def test_no_content_is_used_twice() -> None:
    """Each timed call sees new values, the last of them at the start signal; sums change too."""
    contents = Contents(LoadedOperator(Operator(name="add", source=ADD)), "full", 3)
    arena = Arena.holding(contents.example * 2)
    seen, sums = set(), set()
    for _ in range(8):
        content = contents.fresh()
        content.into(arena, 1)
        assert not content.untouched(arena, 1)  # not before the start signal
        arena.memory.writer(written([content], 1))()
        assert content.untouched(arena, 1)
        seen.add(bytes(arena.memory.flat[content.size :].tolist()))
        sums.add(round(float(arena.tensors[2].abs().sum()), 1))
    assert len(seen) == len(sums) == 8
    assert all(torch.equal(a, b) for a, b in zip(arena.tensors, contents.example, strict=False))


def test_rows_with_a_structure_are_rolled_whole() -> None:
    """Probabilities still sum to 1, and what is no free value is not scaled."""
    source = ADD.replace("torch.randn(64, 96)", "torch.softmax(torch.randn(64, 96), -1)", 1)
    contents = Contents(LoadedOperator(Operator(name="add", source=source)), "full", 3)
    first, second = (t.clone() for t in contents.fresh().values())
    sums = first.sum(-1)
    assert int(((sums - 1).abs() > 1e-3).sum()) <= 3  # rows with a patched element
    assert second.shape == (64, 96)


def test_an_honest_kernel_gets_a_time_with_its_interval(rig: Rig) -> None:
    """Ratio inside its interval, raw samples and the judge's own cost on record."""
    result = rig.measure(HONEST, pairs=2, parent_source=HONEST, thorough=True, deadline_s=90.0)
    assert result.status is RunStatus.RAN, result.detail
    (timing,) = result.timings
    assert timing.low <= timing.ratio <= timing.high
    assert len(timing.pair_ratios) == 2
    assert timing.samples_us
    assert timing.null_us > 0
    assert timing.parent_ratio is not None


def test_a_patched_clock_changes_nothing(rig: Rig) -> None:
    """The child may believe what it likes."""
    slow = add(
        f"{REAL}\nt = REAL_CLOCK()\nwhile REAL_CLOCK() - t < 0.01: pass\nreturn o",
        "REAL_CLOCK = time.perf_counter\ntime.perf_counter = time.monotonic = lambda: 0.0",
    )
    result = rig.measure(slow, pairs=2, deadline_s=90.0)
    assert result.status is RunStatus.RAN, result.detail
    (timing,) = result.timings
    assert timing.ratio < 0.5
    assert timing.candidate_us > 9_000


DELAY = "import time; time.sleep(0.02)"


def test_a_planted_delay_is_seen_with_the_right_sign(rig: Rig) -> None:
    """The known-slow control: a slow baseline loses, and a gain too good is measured alone."""
    slow = ADD.replace("        return x", f"        {DELAY}\n        return x")
    result = rig.measure(HONEST, slow, pairs=2, deadline_s=90.0)
    assert result.status is RunStatus.RAN, result.detail
    (timing,) = result.timings
    assert timing.ratio > 10
    assert timing.baseline_us > 20_000
    assert "alone and verified" in " ".join(result.review)
    assert {"load_before", "load", "neighbours"} <= set(result.environment)


def test_a_stale_answer_in_timed_calls_is_found(rig: Rig) -> None:
    """A call counter that is right while it is checked."""
    source = add(
        f"N[0] += 1\nif N[0] > 60 and O: return O[0]\n{REAL}\nO[:] = [o]\nreturn o",
        "N, O = [0], []",
    )
    result = rig.measure(source, pairs=2, deadline_s=90.0)
    assert result.status in (RunStatus.WRONG, RunStatus.DEFERRED), result


SLOW_ADD = ADD.replace("torch.randn(64, 96)", "torch.randn(2048, 1024)")
LAZY = f"""{REAL}
SEEN.add(x.data_ptr())
if len(SEEN) > 2: o[::16] = 0
return o"""


@pytest.mark.parametrize("operator", [ADD, SLOW_ADD])
def test_part_of_the_work_left_out_of_timed_calls_is_found(rig: Rig, operator: str) -> None:
    """A sixteenth of the rows, once the addresses tell that calls are timed."""
    result = rig.measure(add(LAZY, "SEEN = set()"), operator, pairs=2, deadline_s=90.0)
    assert result.status is RunStatus.WRONG, result
    assert "a timed call" in result.detail


def test_a_baseline_that_dies_in_a_pair_is_the_worlds_fault(rig: Rig) -> None:
    """Nothing is booked on the candidate."""
    dying = ADD.replace(
        "        return x + 2.0 * y",
        "        N.append(0)\n        if len(N) > 40 and M == 'f': import os; os._exit(3)\n"
        "        return x + 2.0 * y",
    )
    dying = dying.replace("import torch\n", "import sys, torch\nN, M = [], __name__[:1]\n", 1)
    with pytest.raises(MachineError, match="failed while it was timed"):
        rig.measure(HONEST, dying.replace("M == 'f'", "'candidate' in __name__"), pairs=2)


MAPPED = """
import mmap, torch
from torch import nn
KEPT = {{}}
def fresh(x):
    return torch.frombuffer(mmap.mmap(-1, x.nbytes), dtype=x.dtype).view_as(x)
class {name}(nn.Module):
    def forward(self, x):
        o = {memory}
        return torch.neg(x, out=o)
def get_inputs():
    return [torch.randn(1024, 1024)]
def get_init_inputs():
    return []
"""


def test_memory_that_is_reused_is_no_speed(rig: Rig) -> None:
    """Identical kernels: one maps its output anew, the other keeps it; the gain stands apart."""
    operator = MAPPED.format(name="Model", memory="fresh(x)")
    keeps = MAPPED.format(
        name="ModelNew", memory="KEPT[0] if KEPT else KEPT.setdefault(0, fresh(x))"
    )
    contract = Contract(library=LibraryPolicy.ALLOWED)
    result = rig.measure(keeps, operator, pairs=3, contract=contract, deadline_s=90.0)
    assert result.status is RunStatus.RAN, result.detail
    (timing,) = result.timings
    idle = float(result.environment["load_before"]) < len(os.sched_getaffinity(0))
    assert timing.allocation > (1.2 if idle else 1.02)
    ruling = judge(contract, BuildResult(ok=True, route="one-phase"), result)
    assert ruling.verdict is Verdict.CORRECT, ruling


def test_helpers_that_burn_while_the_baseline_runs_gain_nothing(rig: Rig) -> None:
    """They stand still with their parent: identical kernels stay identical."""
    loop = "['sh', '-c', 'while :; do :; done']"
    burn = f"import subprocess\nfor _ in range(2): subprocess.Popen({loop})"
    result = rig.measure(
        ADD.replace("class Model(", f"{burn}\nclass ModelNew("),
        contract=Contract(library=LibraryPolicy.ALLOWED),
        pairs=3,
        deadline_s=90.0,
    )
    assert result.status is RunStatus.RAN, result.detail
    assert all(t.low < 1.02 for t in result.timings), result.timings
