"""Where an output is wrong, in words: counts, indices, patterns; never an expected value."""

from __future__ import annotations

import torch
from torch import Tensor

SHOWN = 5
"""Indices named; the rest is counted."""
ALMOST = 0.95
"""Share from which "all of them" is said: some errors fall below the limit by chance."""


def located(bad: Tensor, output: Tensor, exact: Tensor | None = None) -> str:
    """One line about the elements in `bad`, not empty, of `output`; `exact` finds a pattern."""
    if not bad.ndim:
        return "the value is wrong" + _relation(output, exact)
    count, total = int(bad.sum()), bad.numel()
    parts = [f"{count} of {total} elements wrong", f"first at {_first(bad)}"]
    broken = int((~torch.isfinite(output) & bad).sum()) if output.is_floating_point() else 0
    if broken:
        nan = int((torch.isnan(output) & bad).sum())
        parts.append(f"{nan} NaN and {broken - nan} infinite among them")
    if count >= ALMOST * total:
        return ", ".join(parts) + "; every element" + _relation(output, exact)
    pattern = _pattern(bad)
    return ", ".join(parts) + (f"; {pattern}" if pattern else "; scattered")


def _first(bad: Tensor) -> str:
    flat = bad.reshape(-1).nonzero()[:SHOWN, 0].tolist()
    return ", ".join(str(_unravel(i, tuple(bad.shape))) for i in flat)


def _unravel(index: int, shape: tuple[int, ...]) -> list[int]:
    """The index by axis.

    >>> _unravel(7, (2, 5))
    [1, 2]
    """
    position = []
    for extent in reversed(shape):
        position.append(index % extent)
        index //= extent
    return position[::-1]


def _pattern(bad: Tensor) -> str:
    """The smallest box round the bad elements, axis by axis, where it says something."""
    ranges = []
    for axis, extent in enumerate(bad.shape):
        others = [a for a in range(bad.ndim) if a != axis]
        hit = (bad.any(dim=others) if others else bad).nonzero()[:, 0]
        low, high = int(hit[0]), int(hit[-1])
        if (low, high) != (0, extent - 1):
            ranges.append(_range(axis, extent, low, high))
        elif 1 < hit.numel() < extent / 2:
            steps = hit.diff().unique()
            if steps.numel() == 1:
                ranges.append(f"every {int(steps[0])}th index of axis {axis}")
            else:
                ranges.append(f"{hit.numel()} of {extent} indices of axis {axis}, whole slices")
    return "; ".join(ranges)


def _range(axis: int, extent: int, low: int, high: int) -> str:
    """Which part of the axis is wrong.

    >>> _range(1, 1000, 992, 999)
    'only the last 8 of 1000 along axis 1 (from index 992 = 31 * 32)'
    """
    if low == high:
        last = ", the last" if high == extent - 1 and low else ""
        return f"only index {low} of {extent} along axis {axis}{last}"
    if high < extent - 1:
        return f"only indices {low} to {high} of {extent} along axis {axis}"
    block = next((b for b in (256, 128, 64, 32, 16, 8, 4) if low % b == 0), None)
    origin = f" (from index {low} = {low // block} * {block})" if block else f" (from index {low})"
    return f"only the last {extent - low} of {extent} along axis {axis}{origin}"


def _relation(output: Tensor, exact: Tensor | None) -> str:
    """How a wholly wrong output relates to the right one: all zeros, sign, factor or offset."""
    if not output.is_floating_point() or exact is None or not output.numel():
        return ""
    given, truth = output.reshape(-1).double(), exact.reshape(-1)
    if not bool((given != 0).any()):
        return ", all are 0"
    if not bool(torch.isfinite(given).all()):
        return ""
    factor = float((given @ truth) / (truth @ truth).clamp_min(1e-300))
    rest = given - factor * truth
    size = float(given.norm())
    if float(rest.norm()) <= 1e-4 * size:
        return ", sign flipped" if abs(factor + 1) < 1e-3 else f", off by a factor of {factor:.4g}"
    offset = given - truth
    if float((offset - offset.mean()).norm()) <= 1e-4 * float(offset.norm()):
        return ", off by one constant"
    if given.numel() > 1 and bool((given == given[0]).all()):
        return ", all are the same"
    return ""
