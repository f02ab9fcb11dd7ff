"""Which ATen operators a model spends its time in, with all arguments of each call."""

import io
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.export import export

from data.operator import read_operator
from targets.remote.operator import LoadedOperator, foreign

RUNS = 5
"""Profiled runs, after one that warms up."""
LABEL = "kforge operator "


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor among the arguments of a call."""

    shape: tuple[int, ...]
    dtype: str
    state: bool
    """Whether it is a parameter or buffer of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An operator with its arguments; lists are tuples, tensors are `Tensor`."""

    op: str
    """`aten.layer_norm.default`."""
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]
    random: bool
    """Whether it draws random numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """A call and what it takes in one run of the model."""

    call: Call
    calls: int
    microseconds: float


def used(path: Path) -> tuple[Used, ...]:
    """The operators of the model in a file, those that take longest first; on the processor.

    OperatorError when the file is no model or the model cannot be exported.
    """
    with _beside(path):
        loaded = LoadedOperator(read_operator(path, suite="file"))
        model = loaded.model(loaded.official, 0).eval()
        inputs = tuple(loaded.inputs(loaded.official, 0))
        with torch.no_grad(), foreign("torch.export"), _quiet():
            graph = export(model, inputs).module()
    runner = _Labelled(graph)
    with torch.no_grad():
        runner.run(*inputs)
        runner.counts.clear()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as trace:
            for _ in range(RUNS):
                runner.run(*inputs)
    return _sorted(runner.counts, trace.events())


def _sorted(counts: Counter[Call], events: Iterable[Any]) -> tuple[Used, ...]:
    """The calls with their times: of all calls alike the median, against disturbed ones."""
    times: dict[str, list[float]] = {}
    for event in events:
        times.setdefault(event.name, []).append(event.cpu_time_total)
    found = [
        Used(
            call=call,
            calls=count // RUNS,
            microseconds=count // RUNS * median(times[_label(number)]),
        )
        for number, (call, count) in enumerate(counts.items())
    ]
    return tuple(sorted(found, key=lambda one: -one.microseconds))


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """The file may import those beside it."""
    sys.path.insert(0, str(path.absolute().parent))
    try:
        yield
    finally:
        sys.path.remove(str(path.absolute().parent))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's pages on a model that it cannot trace: the error is one line."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def _label(number: int) -> str:
    return f"{LABEL}{number}"


class _Labelled(fx.Interpreter):  # type: ignore[misc]  # torch is untyped here
    """Runs a traced model with a label in the profile around each call that computes."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph)
        self.counts: Counter[Call] = Counter()
        self._state: set[int] = set()

    def run_node(self, n: fx.Node) -> Any:
        computes = isinstance(n.target, OpOverload) and not _is_view(n.target)
        if n.op != "call_function" or not computes:
            result = super().run_node(n)
            if n.op == "get_attr" and isinstance(result, torch.Tensor):
                self._state.add(id(result))
            return result
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        call = Call(
            op=str(n.target),
            arguments=tuple(map(self._told, args)),
            keywords=tuple((name, self._told(value)) for name, value in kwargs.items()),
            random=_is_random(n.target, args, kwargs),
        )
        self.counts[call] += 1
        with torch.profiler.record_function(_label(list(self.counts).index(call))):
            return super().run_node(n)

    def _told(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return Tensor(
                shape=tuple(value.shape),
                dtype=str(value.dtype).removeprefix("torch."),
                state=id(value) in self._state,
            )
        return tuple(map(self._told, value)) if isinstance(value, list | tuple) else value


def _is_random(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the call draws random numbers; attention without dropout does not."""
    if torch.Tag.nondeterministic_seeded not in op.tags:
        return False
    names = [argument.name for argument in op._schema.arguments]  # noqa: SLF001  (as below)
    given = dict(zip(names, args, strict=False)) | kwargs
    return "dropout_p" not in names or bool(given.get("dropout_p"))


def _is_view(op: Any) -> bool:
    """Whether the result is the argument's memory in another shape."""
    returns = op._schema.returns  # noqa: SLF001  (torch has no other way to ask)
    return any(r.alias_info is not None for r in returns)
