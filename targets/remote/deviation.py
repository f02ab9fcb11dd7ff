"""How far an output is from the exact one: as a whole, in its worst element, worst slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from targets.remote.processes import runnable

CHUNK = 1 << 17
"""Elements compared at once: float64 temporaries stay in the cache."""
TILE = 32
SHORTEST = 8
"""A slice of fewer elements says no more than its elements do."""
TINY = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Distances from the exact output; 0 where it is met."""

    norm: float
    """Norm of the error over the norm of the output."""
    worst: float
    """Largest error over the root mean square of the output."""
    slice: float
    """Norm of a slice's error over max(its norm, rms * sqrt(n)); the worst slice."""

    def larger(self, other: Deviation) -> Deviation:
        """The larger one of each."""
        return Deviation(
            norm=max(self.norm, other.norm),
            worst=max(self.worst, other.worst),
            slice=max(self.slice, other.slice),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The exact output with what is needed to compare others with it."""

    values: Tensor
    """float64; 0 where the output is not finite."""
    finite: Tensor | None
    """None when all are finite."""
    rms: float
    """Of the finite values; of the terms that cancel where all are 0."""
    norm: float
    slices: tuple[Tensor, ...]
    """Mean square of each slice over rms², at least 1: one tensor a family of slices."""


@contextmanager
def spare_threads() -> Iterator[None]:
    """All threads for torch inside where nothing else runs on this host, otherwise one.

    With busy neighbours a barrier a call costs more than it saves. Measured with 7 runnable threads
    on 2 cores: 68 ms instead of 0.2 for `isfinite` of 0.2 M.
    """
    if runnable() <= 1:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def all_finite(values: Tensor) -> bool:
    """Whether nothing is infinite or NaN: their sum tells in a third of the time of a mask."""
    if not values.is_floating_point():
        return True
    total = float(values.sum(dtype=torch.float64))
    return math.isfinite(total) or bool(torch.isfinite(values).all())


def exact_output(values: Tensor, terms: Callable[[], float]) -> Exact:
    """`values` (float64) prepared; `terms` tells the size of what cancels where the output is 0."""
    whole = all_finite(values)
    finite = None if whole else torch.isfinite(values)
    clean = values if finite is None else values.masked_fill(~finite, 0.0)
    count = max(1, values.numel() if finite is None else int(finite.sum()))
    norm = _norm(clean)
    rms = norm / count**0.5
    if rms == 0.0:
        rms = max(terms(), TINY)
        norm = rms * count**0.5
    scaled = (clean / rms).float()
    return Exact(
        values=clean,
        finite=finite,
        rms=rms,
        norm=norm,
        slices=tuple(s.clamp_min(1.0) for s in _means(scaled.mul_(scaled))),
    )


def _norm(values: Tensor) -> float:
    """On a device by kinds of kernels that are there already: each costs 10 to 25 ms at first."""
    if values.is_cuda:
        return math.sqrt(float((values * values).sum()))
    return float(torch.linalg.vector_norm(values))


def difference(exact: Exact, output: Tensor) -> Tensor:
    """(output - exact) / rms in float32, 0 where the exact output is not finite."""
    result = torch.empty(exact.values.shape, dtype=torch.float32, device=output.device)
    flat, truth, given = result.view(-1), exact.values.reshape(-1), output.reshape(-1)
    finite = None if exact.finite is None else exact.finite.reshape(-1)
    work = torch.empty_like(truth[:CHUNK])
    for low in range(0, truth.numel(), CHUNK):
        part = slice(low, low + CHUNK)
        error = work[: truth[part].numel()].copy_(given[part]).sub_(truth[part])
        error.mul_(1 / exact.rms)
        if finite is not None:
            error.masked_fill_(~finite[part], 0.0)
        flat[part] = error
    return result


def deviation(exact: Exact, output: Tensor) -> Deviation:
    """Distances of `output`, of any real dtype and the same shape."""
    if not output.numel():
        return Deviation(norm=0.0, worst=0.0, slice=0.0)
    squares = difference(exact, output)
    squares.mul_(squares)
    norm = float(squares.mean()) ** 0.5 * (squares.numel() ** 0.5 * exact.rms / exact.norm)
    pairs = zip(_means(squares), exact.slices, strict=True)
    means = [float((mean / size).max()) for mean, size in pairs]
    return Deviation(
        norm=norm, worst=float(squares.max()) ** 0.5, slice=max(means, default=0.0) ** 0.5
    )


def _means(squares: Tensor) -> Iterator[Tensor]:
    """Mean over each row along every axis, and over each 32 x 32 tile of the last two axes."""
    if squares.ndim < 2 or not squares.numel():
        return
    for axis, extent in enumerate(squares.shape):
        if extent >= SHORTEST:
            yield squares.mean(axis)
    rows, columns = squares.shape[-2:]
    if rows * columns > TILE and min(rows, columns) > 1:
        kernel = (min(TILE, rows), min(TILE, columns))
        planes = squares.reshape(-1, 1, rows, columns)
        yield avg_pool2d(planes, kernel, kernel, ceil_mode=True, count_include_pad=False)
