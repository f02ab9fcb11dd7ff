"""What a package has to know of a kernel: its arguments, its results, the sizes it is used at."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from data.errors import ExportError
from data.records import Device, Iteration, TensorSpec
from targets import TARGETS
from targets.remote.operator import LoadedOperator
from targets.remote.recipe import derived
from targets.remote.sizing import sizes
from tasks.export.carried.graph import graph
from tasks.export.joining import half_of
from tasks.export.names import identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One size at which the kernel is used."""

    shape: str
    variant: int
    sizes: dict[str, int] | None
    inputs: list[tuple[str, list[int]]]
    state: list[tuple[str, list[int]]]
    outputs: list[tuple[str, list[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One entry of a package's `kernels.json`."""

    name: str
    operator: str
    place: str
    card: str
    policy: str
    inputs: list[str]
    state: list[str]
    returns: str
    kinds: list[str]
    variants: list[list[Any]]
    cases: list[Case]


def described(kernel: Iteration) -> Described:
    """The entry of a confirmed kernel; ExportError where a package cannot have it."""
    loaded = LoadedOperator(kernel.operator)
    shapes = used(kernel)
    variants: list[list[Any]] = []
    cases = [_case(loaded, shape, variants) for shape in shapes]
    _refuse_modes(loaded, cases[0])
    assert kernel.candidate is not None
    place = place_of(kernel.device, kernel.candidate.language)
    operator = identifier(kernel.operator.name)
    return Described(
        name=f"{operator}_{identifier(kernel.device.name)}",
        operator=operator,
        place=place,
        card="" if place == "cpu" else kernel.environment.get("device", ""),
        policy=kernel.contract.policy.value,
        inputs=_arguments(loaded, cases[0]),
        state=[spec.name for spec in sizes(loaded, shapes[0]).parameters],
        returns=_returns(loaded, shapes[0]),
        kinds=[kind.value for kind in loaded.kinds or ()],
        variants=variants,
        cases=cases,
    )


def used(kernel: Iteration) -> tuple[str, ...]:
    """Sizes at which the kernel was found right and was not found slower than its baseline."""
    assert kernel.run is not None
    right = dict.fromkeys(draw.shape for draw in kernel.run.draws)
    wrong = {draw.shape for draw in kernel.run.draws if not draw.ok}
    return tuple(shape for shape in right if shape not in wrong | set(slower(kernel)))


def slower(kernel: Iteration) -> tuple[str, ...]:
    """Sizes at which the baseline won, with its whole interval."""
    return tuple(t.shape for t in (kernel.run.timings if kernel.run else ()) if t.high < 1.0)


def place_of(device: Device, language: str) -> str:
    """Torch's name of where the kernel's tensors lie."""
    half = half_of(device, language) or TARGETS[device.target].halves[0]
    return half.place


def _case(loaded: LoadedOperator, shape: str, variants: list[list[Any]]) -> Case:
    """The size; constructor arguments that are new go into `variants`."""
    given = loaded.init_args(shape)
    if not _plain(given):
        raise ExportError(f"its constructor takes more than plain values: {given!r}")
    if given not in variants:
        variants.append(given)
    found = sizes(loaded, shape)
    return Case(
        shape=shape,
        variant=variants.index(given),
        sizes=None if derived(shape).changes else loaded.shapes[shape],
        inputs=_signatures(found.inputs),
        state=_signatures(found.parameters),
        outputs=_signatures(found.outputs),
    )


def _plain(value: object) -> bool:
    """Whether JSON holds the value as it is."""
    if isinstance(value, list):
        return all(map(_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _signatures(specs: Sequence[TensorSpec]) -> list[tuple[str, list[int]]]:
    return [(spec.dtype, list(spec.shape)) for spec in specs]


def _refuse_modes(loaded: LoadedOperator, case: Case) -> None:
    """ExportError where training changes what the operator computes: it was judged in one mode."""
    model = loaded.model(derived(case.shape).base, 0)
    if loaded.silenced:
        raise ExportError("it has dropout, which is off while a kernel is judged")
    inputs = [(getattr(torch, dtype), tuple(shape)) for dtype, shape in case.inputs]
    if graph(model, inputs) is None:
        raise ExportError("it does not compute the same in training and out of it, for sure")


def _arguments(loaded: LoadedOperator, case: Case) -> list[str]:
    """Names of the inputs."""
    model = loaded.skeleton(derived(case.shape).base)
    names = list(inspect.signature(model.forward).parameters)[: len(case.inputs)]
    if len(names) < len(case.inputs):
        raise ExportError("its forward does not name its inputs")
    return names


def _returns(loaded: LoadedOperator, shape: str) -> str:
    """How the results come: tensor, tuple or list; ExportError for anything else."""
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        inputs = loaded.inputs(shape, 0)
        result = loaded.model(shape, 0)(*inputs)
        if not all(isinstance(value, torch.Tensor) for value in inputs):
            raise ExportError("it takes more than tensors")
    if isinstance(result, torch.Tensor):
        return "tensor"
    if type(result) in (tuple, list) and all(isinstance(r, torch.Tensor) for r in result):
        return type(result).__name__
    raise ExportError(f"it returns a {type(result).__name__}, expected tensors")
