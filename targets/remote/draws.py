"""Inputs and parameters to judge with: secret seeds, distributions, shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from data.records import SMALL, Contract, ShapePolicy
from targets.remote.deviation import spare_threads
from targets.remote.distributions import DISTRIBUTIONS, Domain, domains, redraw
from targets.remote.operator import LoadedOperator, OperatorFault
from targets.remote.recipe import Change, Resize, derived
from targets.remote.sizing import map_tensors, sizes

HEAVY_BYTES = 64 * 2**20
"""Tensors of one call with which many draws are affordable (JUDGE.md, section 3)."""
HEAVY_FLOPS = 2e9
"""Of its products: 0.1 s in float64 on 2 idle cores."""
PROBE_SHARE = 1 / 8
"""Of both, for the probes of an admission."""
EMULATED_SHARE = 1 / 64
"""Of both, for a declared shape in the emulator, which is some 100 times slower than a processor:
0.1 s a call on two busy cores."""
EMULATED_CUT = 1 / 256
"""The same for a shape that has to be cut anyway."""
LEAST = 16
"""To which a size other than the batch is cut."""
SEEDS = 3
EXTENTS = (129, 1, 7, 0, 127, 31, 33, 61)
"""New sizes for a kernel that promises a family: none, one, odd, one off a tile, no multiple."""
OFFICIAL_DRAW, ZERO_MEAN = "official", "zero mean"
FEW = (OFFICIAL_DRAW, ZERO_MEAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawInput:
    """One set of inputs with the parameters and buffers of the model."""

    shape: str
    distribution: str
    inputs: list[Any]
    state: dict[str, torch.Tensor]
    """The whole state dict, randomised; draws of one seed share the object."""


@dataclass(frozen=True, slots=True)
class _Step:
    shape: str
    distribution: str
    seed: int
    scale: float = 1.0
    """Of the values of floating inputs."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What all draws of one seed and shape are made from: 4 M normal numbers take 40 ms."""

    state: dict[str, torch.Tensor]
    official: list[Any]
    domains: tuple[Domain, ...]


def plan(
    loaded: LoadedOperator,
    contract: Contract,
    *,
    seed: int,
    thorough: bool,
    scales: Sequence[float] = (),
) -> Iterator[DrawInput]:
    """The draws of one judgement, cheap and decisive ones first.

    `scales` of zero-mean inputs are those at which admission saw what it could not see at 1.
    A draw for which the reference is not finite does not count (`numerics.expected`).
    """
    yield from _made(loaded, _steps(loaded, contract, seed=seed, thorough=thorough), scales)


def small_plan(
    loaded: LoadedOperator, contract: Contract, *, seed: int, scales: Sequence[float] = ()
) -> Iterator[DrawInput]:
    """The same for the emulator: every distribution, on shapes that it can do."""
    yield from _made(loaded, _small_steps(loaded, contract, seed), scales)


def _made(
    loaded: LoadedOperator, steps: Iterator[_Step], scales: Sequence[float]
) -> Iterator[DrawInput]:
    known: dict[tuple[str, int], _Source] = {}
    heavy, *rest = steps
    larger = [replace(heavy, distribution=ZERO_MEAN, scale=s) for s in scales]
    for step in (heavy, *rest[:1], *larger, *rest[1:]):
        key = (step.shape, step.seed)
        with spare_threads():
            if key not in known:
                known.clear()
                known[key] = _source(loaded, step)
            made = scaled(loaded, _draw(loaded, step, known[key]), step.scale)
        yield made


def draw(loaded: LoadedOperator, shape: str, distribution: str, seed: int) -> DrawInput:
    """One draw, with parameters of the same seed."""
    step = _Step(shape, distribution, seed)
    return _draw(loaded, step, _source(loaded, step))


def scaled(loaded: LoadedOperator, made: DrawInput, scale: float) -> DrawInput:
    """The draw with its real inputs multiplied; those of another domain stay."""
    if scale == 1:
        return made
    known = domains_of(loaded, made.shape, made.inputs)
    inputs = [
        t * scale if d.kind == "real" and isinstance(t, torch.Tensor) else t
        for t, d in zip(made.inputs, known, strict=True)
    ]
    return replace(made, inputs=inputs, distribution=f"{made.distribution}, times {scale:g}")


def refill(loaded: LoadedOperator, shape: str, seed: int) -> list[Any]:
    """New input values by the official recipe, for timed calls."""
    return _placed(loaded, loaded.inputs(shape, seed))


def _placed(loaded: LoadedOperator, inputs: list[Any]) -> list[Any]:
    """The same where the reference runs."""
    moved: list[Any] = map_tensors(lambda t: t.to(loaded.place), inputs)
    return moved


def heavy_shape(loaded: LoadedOperator) -> str:
    """The shape for many draws: `small`, else the official one with sizes cut if need be.

    What a kernel made for a fixed shape has not promised is not in here: `plan` sees to that.
    """
    if SMALL in loaded.shapes:
        return SMALL
    full = loaded.official
    return full if affordable(loaded, full) else str(_cut(loaded, Resize(full), 1.0))


def small_shape(loaded: LoadedOperator) -> str:
    """What the emulator can do: `small`, else the official shape, cut if need be."""
    base = SMALL if SMALL in loaded.shapes else loaded.official
    if affordable(loaded, base, EMULATED_SHARE):
        return base
    return str(_cut(loaded, Resize(base), EMULATED_CUT))


def probe_shape(loaded: LoadedOperator) -> str:
    """The heavy shape, cut until the probes of an admission take a second."""
    heavy = heavy_shape(loaded)
    if affordable(loaded, heavy, PROBE_SHARE):
        return heavy
    return str(_cut(loaded, derived(heavy), PROBE_SHARE))


def _cut(loaded: LoadedOperator, resize: Resize, share: float) -> Resize:
    """One size after the other halved, the batch first, until many draws are affordable."""
    shapes = [t.shape for t in sizes(loaded, str(resize)).inputs]
    batch = next((s[0] for s in shapes if len(s) > 1), 1)
    extents = sorted({n for s in shapes for n in s} - {batch}, reverse=True)
    for old in (batch, *extents):
        steps = (old >> k for k in range(1, old.bit_length()))
        wanted = (Change(old, n) for n in steps if n >= (2 if old == batch else LEAST))
        taken = []
        for found in filter(None, (_taken(loaded, resize, change) for change in wanted)):
            if affordable(loaded, str(found), share):
                return found
            taken.append(found)
        small = [t for t in taken if LEAST <= t.changes[-1].new <= 4 * LEAST]
        resize = next(iter([*small, *taken[-1:]]), resize)
    return resize


def _taken(loaded: LoadedOperator, resize: Resize, change: Change) -> Resize | None:
    """The resizing with one change more: on leading axes, else everywhere; None if refused."""
    before = sizes(loaded, str(resize)).inputs
    for leading in (True, False):
        wanted = Resize(resize.base, (*resize.changes, replace(change, leading=leading)))
        try:
            if sizes(loaded, str(wanted)).inputs != before:
                return wanted
        except OperatorFault:
            continue
    return None


def family(loaded: LoadedOperator, limit: int = 8) -> list[str]:
    """Further shapes on which the reference works: declared ones, else derived ones."""
    base = heavy_shape(loaded)
    declared = [s for s in loaded.shapes if s not in (base, loaded.official)]
    return declared + list(islice(_derived(loaded, loaded.official), limit))


def _derived(loaded: LoadedOperator, base: str) -> Iterator[str]:
    """Shapes with one size changed that the reference takes."""
    extents = dict.fromkeys(n for t in sizes(loaded, base).inputs for n in t.shape if n > 1)
    for turn in range(len(EXTENTS)):
        for position, old in enumerate(extents):
            change = Change(old, EXTENTS[(turn + position) % len(EXTENTS)])
            found = _taken(loaded, Resize(base), change)
            if found is not None and affordable(loaded, str(found)):
                yield str(found)


def affordable(loaded: LoadedOperator, shape: str, share: float = 1.0) -> bool:
    """Whether the reference takes this shape and many draws of it are cheap."""
    try:
        size = sizes(loaded, shape)
    except OperatorFault:
        return False
    return size.bytes <= share * HEAVY_BYTES and size.product_flops <= share * HEAVY_FLOPS


def _steps(
    loaded: LoadedOperator, contract: Contract, *, seed: int, thorough: bool
) -> Iterator[_Step]:
    full, heavy = loaded.official, heavy_shape(loaded)
    if contract.shapes is ShapePolicy.FIXED and heavy not in loaded.shapes:
        heavy = full  # a cut batch is another shape, which the kernel has not promised
    many = DISTRIBUTIONS if thorough or affordable(loaded, heavy) else FEW
    rounds = SEEDS if thorough and affordable(loaded, heavy, PROBE_SHARE) else 1
    for turn in range(rounds):
        for number, distribution in enumerate(many):
            own = turn if rounds > 1 else number * SEEDS // len(many)
            yield _Step(heavy, distribution, _seed(seed, own))
    others = [s for s in loaded.shapes if s not in (heavy, full)]
    if contract.shapes is ShapePolicy.FAMILY:
        others = family(loaded)
    elif not thorough:
        others = []  # the winner meets them when it is confirmed
    yield from (_Step(s, ZERO_MEAN, _seed(seed, SEEDS + k)) for k, s in enumerate(others))
    if full != heavy:
        yield from (_Step(full, d, _seed(seed, 2 * SEEDS)) for d in FEW)


def _small_steps(loaded: LoadedOperator, contract: Contract, seed: int) -> Iterator[_Step]:
    """The small shape, then others that are declared and small enough."""
    small = small_shape(loaded)
    for number, distribution in enumerate(DISTRIBUTIONS):
        yield _Step(small, distribution, _seed(seed, number * SEEDS // len(DISTRIBUTIONS)))
    other = family(loaded) if contract.shapes is ShapePolicy.FAMILY else loaded.shapes
    fitting = [s for s in other if s != small and affordable(loaded, s, EMULATED_SHARE)]
    yield from (_Step(s, ZERO_MEAN, _seed(seed, SEEDS + k)) for k, s in enumerate(fitting))


def _seed(seed: int, number: int) -> int:
    return (seed * 1_000_003 + number * 7919) % 2**62


def _source(loaded: LoadedOperator, step: _Step) -> _Source:
    state = parameters(loaded, step.shape, step.seed)
    official = loaded.inputs(step.shape, _seed(step.seed, 1))
    known = domains_of(loaded, step.shape, official)
    return _Source(state, _placed(loaded, official), known)


def _draw(loaded: LoadedOperator, step: _Step, source: _Source) -> DrawInput:
    number = DISTRIBUTIONS.index(step.distribution)
    generator = torch.Generator(loaded.place).manual_seed(_seed(step.seed, number))
    return DrawInput(
        shape=step.shape,
        distribution=step.distribution,
        inputs=redraw(source.official, source.domains, step.distribution, generator),
        state=source.state,
    )


def domains_of(loaded: LoadedOperator, shape: str, official: list[Any]) -> tuple[Domain, ...]:
    """The domain of each input."""
    return domains(loaded.domains, loaded.shapes.get(derived(shape).base, {}), official)


def parameters(loaded: LoadedOperator, shape: str, seed: int) -> dict[str, torch.Tensor]:
    """A full state dict: parameters randomised, running statistics too, other buffers as made.

    Constant parameters spread by 0.3 about their value (weights of norms about 1, biases about
    0); the others keep their mean and spread. Tied parameters stay tied.
    """
    model = loaded.skeleton(shape)
    generator = torch.Generator().manual_seed(_seed(seed, 31))
    trained = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    tied: dict[tuple[int, torch.Size], torch.Tensor] = {}
    state = {}
    for name, value in model.state_dict().items():
        key = (value.data_ptr(), value.shape)
        if key not in tied or not value.numel():
            tied[key] = _randomised(name, value, generator, trained=name in trained)
        state[name] = tied[key]
    return state


def _randomised(
    name: str, value: torch.Tensor, generator: torch.Generator, *, trained: bool
) -> torch.Tensor:
    statistic = name.rpartition(".")[2]
    if not value.is_floating_point() or not value.numel():
        return value.clone()
    if statistic == "running_var":
        return _uniform(value, generator) + 0.5
    if statistic != "running_mean" and not trained:
        return value.clone()
    if (value == value.flatten()[0]).all():
        spread = _uniform(value, generator)  # uniform over an interval of 1: deviation 0.29
        return value * (spread + 0.5) if value.flatten()[0] != 0 else spread - 0.5
    normal = torch.randn(value.shape, generator=generator)
    return (normal * value.float().std() + value.float().mean()).to(value.dtype)


def _uniform(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(value.shape, generator=generator).to(value.dtype)
