"""Distributions of input values, each within the input's domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

DISTRIBUTIONS = (
    "official",
    "zero mean",
    "times 3 plus 1",
    "times 0.05",
    "shifted by 100",
    "times 64",
    "mostly zeros",
    "constant rows",
    "sorted rows",
    "spikes at the edges",
)
"""The two that judge precision first (JUDGE.md, section 3)."""
SPECIAL = DISTRIBUTIONS[2:]
"""Those whose structure may make terms cancel: the limits follow the conditioning."""

INTEGRAL_VALUES = 16
"""Floating inputs with so few values, all integers, are labels such as the ±1 of a hinge loss."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What values an input may have."""

    kind: str
    """`real`, `positive`, `probability`, `log_probability`, `index` or `fixed`."""
    below: int = 0
    """For an index: it lies in [0, below)."""


def domains(
    declared: tuple[str, ...] | None, shape: Mapping[str, int], official: list[Any]
) -> tuple[Domain, ...]:
    """One domain an input, as declared or else inferred from the official values.

    >>> domains(("index:rows",), {"rows": 7}, [None])
    (Domain(kind='index', below=7),)
    """
    if declared is None:
        return tuple(map(_inferred, official))
    padded = (*declared, *("fixed" for _ in official[len(declared) :]))
    return tuple(_parsed(word, shape) for word in padded[: len(official)])


def _parsed(word: str, shape: Mapping[str, int]) -> Domain:
    kind, _, bound = word.partition(":")
    below = shape.get(bound, 0) if not bound.isdigit() else int(bound)
    return Domain("fixed") if kind == "index" and below < 1 else Domain(kind, below)


def _inferred(value: Any) -> Domain:
    """A safe guess: integers, labels and probabilities keep their recipe."""
    if not isinstance(value, Tensor) or not value.is_floating_point() or not value.numel():
        return Domain("fixed")
    part = value.flatten()[:4096].double()
    if part.unique().numel() <= INTEGRAL_VALUES and bool((part == part.round()).all()):
        return Domain("fixed")
    rows = value.reshape(-1, value.shape[-1])[:256].double() if value.ndim else part
    if value.ndim and value.shape[-1] > 1 and bool((rows >= 0).all()):
        sums = rows.sum(-1)
        if bool(((sums - 1).abs() < 1e-2).all()):
            return Domain("probability")
    return Domain("real")


def redraw(
    official: list[Any],
    known: tuple[Domain, ...],
    distribution: str,
    generator: torch.Generator,
) -> list[Any]:
    """The inputs under another distribution; what is no tensor stays as it is."""
    if distribution == "official":
        return official
    return [
        _tensor(value, domain, distribution, generator) if isinstance(value, Tensor) else value
        for value, domain in zip(official, known, strict=True)
    ]


def _tensor(value: Tensor, domain: Domain, distribution: str, generator: torch.Generator) -> Tensor:
    if domain.kind == "fixed" or not value.numel() or value.is_complex():
        return value
    if domain.kind == "index":
        return _indices(value, domain.below, distribution, generator)
    work = value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
    return _WAYS[domain.kind](work, distribution, generator).to(value.dtype)


def _order(count: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(count, generator=generator, device=generator.device)


def _integers(like: Tensor, below: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, below, like.shape, generator=generator, device=like.device)


def _fraction(like: Tensor, generator: torch.Generator) -> Tensor:
    """float32 in [0, 1), whatever the type of `like`."""
    return torch.rand(like.shape, generator=generator, device=like.device)


def _normal(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)


def _uniform(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(x.shape, generator=generator, dtype=x.dtype, device=x.device)


def _rows(x: Tensor) -> Tensor:
    """One element a row of the last axis."""
    return x[..., :1] if x.ndim else x


def _spread(x: Tensor) -> float:
    deviation = float(x.std()) if x.numel() > 1 else 0.0
    return deviation if deviation > 0 else 1.0


def _real(x: Tensor, distribution: str, generator: torch.Generator) -> Tensor:
    if distribution == "times 3 plus 1":
        return x * 3 + 1
    if distribution == "times 0.05":
        return x * 0.05
    if distribution == "mostly zeros":
        kept = _uniform(x, generator) < 0.3
        return x * kept * (_uniform(_rows(x), generator) < 0.8)
    normal = _normal(x, generator) * _spread(x)
    if distribution == "shifted by 100":
        return normal + 100 * _normal(_rows(x), generator).sign()
    if distribution == "times 64":
        return normal * 64
    if distribution == "constant rows":
        return _short(_rows(normal)).expand_as(x).contiguous()
    if distribution == "sorted rows":
        return normal.sort(-1).values if x.ndim else normal
    if distribution == "spikes at the edges":
        return _spiked(_normal(x, generator), generator) * _spread(x)
    return normal


EDGES = (0, -1, 1, -2, 2, -3, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128)
"""Indices that a loop over tiles or a tail forgets."""


def _spiked(x: Tensor, generator: torch.Generator) -> Tensor:
    """One large element of either sign in each line along each axis, most at places in EDGES.

    An extreme is at a given index of 1,000 in one line of a thousand otherwise: a maximum that
    forgets index 1 passed eleven draws of 71 rows.
    """
    spiked = x.clone()
    by_extent = sorted(enumerate(x.shape), key=lambda pair: pair[1])
    for turn, (axis, extent) in enumerate(by_extent):  # few lines last and largest: they prevail
        lines = spiked.transpose(axis, -1)
        edges = [e % extent for e in EDGES if -extent <= e < extent]
        places = torch.tensor(edges, device=x.device)
        order = _order(lines[..., 0].numel(), generator) % (2 * len(places))
        index = torch.cat((places, _integers(places, extent, generator)))[order]
        index = index.view(*lines.shape[:-1], 1)
        large = (8 + 4 * _fraction(index, generator)).to(x.dtype)
        sign = _integers(index, 4, generator).clamp_max(1) * 2 - 1
        lines.scatter_(-1, index, large * sign * 2**turn)
    return spiked


def _short(x: Tensor) -> Tensor:
    """Rounded to 6 bits of mantissa: the sum of thousands of equal ones is exact in float32.

    Otherwise every step of a plain sum rounds the same way: 37 of 26,063 elements of an honest
    LayerNorm were refused.
    """
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp((mantissa * 64).round(), exponent - 6)


def _positive(x: Tensor, distribution: str, generator: torch.Generator) -> Tensor:
    if distribution == "times 3 plus 1":
        return x * 3 + 1
    if distribution == "times 0.05":
        return x * 0.05
    if distribution == "shifted by 100":
        return x + 100
    if distribution == "times 64":
        return x * 64
    spread = _normal(x, generator).exp() * x.abs().mean()
    if distribution == "constant rows":
        return _short(_rows(spread)).expand_as(x).contiguous()
    if distribution == "sorted rows":
        return spread.sort(-1).values if x.ndim else spread
    return spread


def _probability(x: Tensor, distribution: str, generator: torch.Generator) -> Tensor:
    """Rows that sum to 1 stay so; else values in [0, 1]."""
    sums = bool(((x.sum(-1) - 1).abs() < 1e-2).all()) if x.ndim else False
    if sums:
        return torch.softmax(_logits(x, distribution, generator), dim=-1)
    return (
        _positive(x, distribution, generator).clamp(0, 1) if distribution != "shifted by 100" else x
    )


def _log_probability(x: Tensor, distribution: str, generator: torch.Generator) -> Tensor:
    return torch.log_softmax(_logits(x, distribution, generator), dim=-1)


def _logits(x: Tensor, distribution: str, generator: torch.Generator) -> Tensor:
    normal = _normal(x, generator)
    if distribution == "constant rows":
        return torch.zeros_like(x)
    if distribution == "sorted rows":
        return normal.sort(-1).values
    scales = {
        "times 3 plus 1": 3.0,
        "times 0.05": 0.05,
        "mostly zeros": 8.0,
        "times 64": 16.0,
    }
    return normal * scales.get(distribution, 1.0)


def _indices(x: Tensor, below: int, distribution: str, generator: torch.Generator) -> Tensor:
    drawn = _integers(x, below, generator).to(x.dtype)
    if distribution == "constant rows":
        return _rows(drawn).expand_as(x).contiguous()
    if distribution == "sorted rows":
        return drawn.sort(-1).values if x.ndim else drawn
    if distribution == "mostly zeros":
        return torch.where(_fraction(x, generator) < 0.7, 0, drawn)
    if distribution == "shifted by 100":
        return torch.where(_fraction(x, generator) < 0.5, below - 1, drawn)
    return drawn


_WAYS: dict[str, Callable[[Tensor, str, torch.Generator], Tensor]] = {
    "real": _real,
    "positive": _positive,
    "probability": _probability,
    "log_probability": _log_probability,
}
