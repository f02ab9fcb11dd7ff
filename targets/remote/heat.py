"""Both forms of the baseline on a device, timed as the race will time the chosen one.

A loop of calls from the host takes as long as its launches: of bias_gelu_scale_residual on an H200
torch.compile took 92 us so and eager 50, behind the gate 17 and 50. The slower form was chosen, and
a kernel of 19 us was called 2.6 times faster.
"""

from collections.abc import Mapping, Sequence

import torch

from targets.remote.bench import Bench
from targets.remote.contents import Contents
from targets.remote.output import Output
from targets.remote.pairs import LEAST_NET, device_form
from targets.remote.side import Side
from targets.remote.stopwatch import Given, time_message, time_null
from targets.remote.warming import queueable

ROUNDS = 7


def queued_us(
    bench: Bench, shape: str, sides: Mapping[str, Side], looped_us: Mapping[str, float]
) -> dict[str, float] | None:
    """Least microseconds of a call by form, launched ahead; None where one cannot be.

    `looped_us`: what a call takes with its launch, for the length of the batches.
    """
    contents = Contents(bench.loaded, shape, bench.seed + 7)
    calls = 0
    for name, side in sides.items():
        side.thaw()
        answer = _hollow(side.call())
        form = device_form(looped_us[name] * 1e-6, contents.bytes, answer)
        calls = min(calls, form.batch) if calls else form.batch
        side.inputs([contents.example] * calls)
        side.outputs_to(answer, calls)
        calls = queueable(side, calls, lambda n: [contents.fresh() for _ in range(n)])
        side.freeze()
        if not calls:
            return None
    return _least(sides, contents, calls)


def _least(sides: Mapping[str, Side], contents: Contents, calls: int) -> dict[str, float]:
    """In turns; the cost of messages and copies, the lower of both, is off."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    nulls: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        fresh = [contents.fresh() for _ in range(calls)]
        for name, side in sides.items():
            side.thaw()
            side.call()
            times[name].append(time_message(side, Given(0, fresh), slots=True).seconds)
            nulls[name].append(time_null(side, fresh))
            side.freeze()
    null = min(min(taken) for taken in nulls.values())
    least = {name: min(taken) for name, taken in times.items()}
    return {n: max(s - null, LEAST_NET * s) / calls * 1e6 for n, s in least.items()}


def _hollow(places: Sequence[Output]) -> list[torch.Tensor]:
    """The form of an answer, without values."""
    return [torch.empty(p.shape, dtype=p.dtype, device="meta") for p in places]
