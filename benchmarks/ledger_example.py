"""One step as the judge leaves it, and texts as long and as different as real ones."""

import itertools
from collections.abc import Iterator, Sequence
from random import Random

import pyarrow as pa

from data import texts
from data.operator import built_in
from data.records import (
    BuildResult,
    Candidate,
    Contract,
    Device,
    Draw,
    Iteration,
    LlmCall,
    Metric,
    Mode,
    Move,
    Operator,
    RunResult,
    RunStatus,
    Timing,
    digest,
)
from data.rows import iteration_row
from data.schema import ITERATIONS
from data.verdict import Verdict

SAMPLES = 36
"""Raw times of a shape: three pairs of twelve (targets/remote/timing.py)."""
SHAPES = ("full", "tall")
DRAWS = 12
PLACE = 0.123456789
"""Stands in the example for every measured value: each row has values of its own there."""
ENVIRONMENT = {
    "torch": "2.13.0",
    "python": "3.11.2",
    "compiler": "g++ 12.2.0",
    "system": "Linux 6.1 x86_64",
    "simd": "avx2 avx512f",
    "threads": "16",
    "driver": "580.95",
}
WORDS = (
    "RUN",
    "OPERATOR",
    "OPERATOR_SOURCE",
    "DEVICE",
    "VENDOR",
    "PARENT",
    "REASON",
    "SOURCE",
    "LOG",
    "STARTED",
    "ENDED",
)
"""Stand in the example for what each row has a word of its own for."""
_NAMES = [f"{word}_{n}" for word in ("tile", "acc", "row", "lane", "partial") for n in range(40)]
_RANDOM = Random(0)
LINES = [
    f"    {_RANDOM.choice(_NAMES)}[{_RANDOM.getrandbits(9)}] += {_RANDOM.choice(_NAMES)};"
    for _ in range(50_000)
]
"""Lines of code that kernels differ in."""


def example(shapes: Sequence[str] = SHAPES) -> Iteration:
    """A timed step with all that a judged one has."""
    return Iteration(
        run_id="RUN",
        epoch="default",
        operator=Operator(name="OPERATOR", source="OPERATOR_SOURCE".ljust(texts.LONG), family="F"),
        device=Device(name="DEVICE", target="cpu", vendor="VENDOR", arch="sm_90"),
        contract=Contract(),
        move=Move(mode=Mode.OPTIMISE, step=0, lineage="a", parent="PARENT", hint="tile it"),
        verdict=Verdict.CORRECT,
        reason="REASON",
        candidate=CANDIDATE,
        build=BUILD,
        run=RunResult(
            status=RunStatus.RAN,
            draws=tuple(
                Draw(shape=shape, distribution="normal", error=PLACE, worst=PLACE, ok=True)
                for shape, _ in zip(itertools.cycle(SHAPES), range(DRAWS), strict=False)
            ),
            timings=tuple(map(_timing, shapes)),
            authored=True,
            isolation="bubblewrap",
            environment={"processor": "AMD EPYC 9R14", "load": "0.3"},
            seconds=PLACE,
        ),
        techniques_added=("tile",),
        detected=("vectorize",),
        gain_over_parent=PLACE,
        speedup=PLACE,
        speedup_low=PLACE,
        speedup_high=PLACE,
        baseline="eager",
        environment=ENVIRONMENT,
        started_at="STARTED",
        ended_at="ENDED",
    )


CANDIDATE = Candidate(
    source="SOURCE".ljust(texts.LONG),
    language="cpp",
    agent_kind="offline",
    agent_name="map",
    parents=("PARENT",),
    techniques=("vectorize", "unroll", "tile"),
    parameters={"unroll": "4", "tile": "64"},
    note="adds tile",
)
BUILD = BuildResult(
    ok=True,
    route="launcher",
    metrics=(Metric(name="loops_vectorised", value=2.0, unit="count", source="g++"),),
    remarks=("122: loop vectorized using 64 byte vectors", "140: not vectorized: calls"),
    command="g++ -O3 -march=native -fopenmp -shared -fPIC -std=c++17 -o kernel.so kernel.cpp -lm",
    log="LOG".ljust(texts.LONG),
    seconds=PLACE,
)


def _timing(shape: str) -> Timing:
    return Timing(
        shape=shape,
        baseline="eager",
        ratio=PLACE,
        low=PLACE,
        high=PLACE,
        pair_ratios=(PLACE,) * 3,
        candidate_us=PLACE,
        baseline_us=PLACE,
        parent_ratio=PLACE,
        parent_low=PLACE,
        parent_high=PLACE,
        floor_us=PLACE,
        null_us=PLACE,
        others_us={"torch.compile": PLACE},
        samples_us=(PLACE,) * SAMPLES,
    )


def call() -> LlmCall:
    """A paid request."""
    return LlmCall(
        role="generator",
        model="some/model",
        prompt_hash="p",
        prompt="Write it. " * 10,
        reply="def f(): ...\n" * 10,
        reasoning=None,
        finish_reason="stop",
        parse_status="ok",
        prompt_tokens=1,
        cached_tokens=0,
        completion_tokens=1,
        reasoning_tokens=0,
        usage="{}",
    )


class Template:
    """The packed record of an example, cut where each row has a value of its own."""

    def __init__(self, iteration: Iteration) -> None:
        rows = pa.Table.from_pylist([iteration_row(iteration)], schema=ITERATIONS.schema)
        timed = {t.shape: t.samples_us for t in (iteration.run.timings if iteration.run else ())}
        key = rows.column("iteration_id")[0].as_py()
        record = texts.packed(ITERATIONS, rows, {key: timed}).rows.column("record")[0].as_py()
        for word in WORDS:
            record = record.replace(digest(word.ljust(texts.LONG)), f"\0{word}\0")
            record = record.replace(f'"{word}"', f'"\0{word}\0"')
        record = record.replace(str(PLACE), "\0VALUE\0")
        parts = record.split("\0")
        self._fixed, self.names = parts[::2], parts[1::2]

    def filled(self, words: dict[str, str], values: Iterator[float]) -> str:
        """The record with these words, and the values in order."""
        own = [repr(next(values)) if n == "VALUE" else words[n] for n in self.names]
        pieces = itertools.zip_longest(self._fixed, own, fillvalue="")
        return "".join(itertools.chain.from_iterable(pieces))


def kernels() -> list[str]:
    """Sources as long as real ones, 3 to 8 kB; operators and first kernels are made of them."""
    ours = [o.source for o in built_in()]
    return ["\n".join(ours[(n + k) % len(ours)] for k in range(3)) for n in range(len(ours))]


def kernel(bases: list[str], number: int, pair: int) -> str:
    """A source of its own: a third of the lines of the pair's kernel are written anew."""
    lines = bases[pair % len(bases)].split("\n")
    phase, start = number % 3, number * 7919 % (len(LINES) - len(lines))
    lines[phase::3] = LINES[start : start + len(lines[phase::3])]
    return "\n".join([f"// {number}", *lines])


def log(number: int) -> str:
    """What a compiler says: its remarks differ in lines and sizes."""
    lines = (number % 97, number % 31, number % 7)
    return "".join(
        f"kernel.cpp:{100 + n}:{n}: optimized: loop vectorized using {16 << n % 3} byte vectors\n"
        f"kernel.cpp:{140 + n}: missed: couldn't vectorize loop: control flow in loop.\n"
        for n in lines
    )
