"""Random pieces of the answers: where they lie, whether two sides agree in them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

PIECES, PIECE_BYTES = 32, 256
"""32 pieces take 14 us; they miss late work of 5 % in one turn of five, in 20 turns never."""
_SECRET = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Block:
    """A dense run of memory that holds one output."""

    address: int
    bytes: int
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Spot:
    """A piece of one block."""

    block: int
    offset: int
    """Bytes from the block's start."""
    address: int
    size: int


def fractions() -> list[float]:
    """Where to look, drawn in a process that the child cannot see."""
    return [_SECRET.random() for _ in range(PIECES)]


def spots(blocks: Sequence[Block], where: Sequence[float]) -> list[Spot]:
    """Pieces spread over the blocks, from a random one on; whole elements.

    >>> spots([Block(1000, 8, torch.float32)], [0.5])
    [Spot(block=0, offset=0, address=1000, size=8)]
    """
    full = [number for number, b in enumerate(blocks) if b.bytes]
    found = []
    for turn, fraction in enumerate(where if full else ()):
        number = full[(turn + int(where[0] * len(full))) % len(full)]
        b = blocks[number]
        size = min(PIECE_BYTES, b.bytes)
        item = b.dtype.itemsize
        offset = int(fraction * (b.bytes - size)) // item * item
        found.append(Spot(number, offset, b.address + offset, size))
    return found


def cut(pieces: bytes, places: Sequence[Spot]) -> list[bytes]:
    """One entry a spot."""
    parts, at = [], 0
    for spot in places:
        parts.append(pieces[at : at + spot.size])
        at += spot.size
    return parts


def unlike(
    mine: Sequence[bytes], theirs: Sequence[bytes], dtypes: Sequence[torch.dtype], limit: float
) -> list[int]:
    """Numbers of the pieces that differ: floating elements by more than `limit`, others at all."""
    return [
        number
        for number, (a, b, dtype) in enumerate(zip(mine, theirs, dtypes, strict=True))
        if a != b and not _near(_elements(a, dtype), _elements(b, dtype), limit)
    ]


def _elements(piece: bytes, dtype: torch.dtype) -> torch.Tensor:
    return torch.frombuffer(bytearray(piece), dtype=dtype)


def _near(a: torch.Tensor, b: torch.Tensor, limit: float) -> bool:
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    if not a.is_floating_point():
        return False
    a, b = a.double(), b.double()
    both_nan = torch.isnan(a) & torch.isnan(b)
    return bool(((a == b) | both_nan | ((a - b).abs() <= limit)).all())


def overlaid(
    output: torch.Tensor,
    strides: Sequence[int],
    given: Sequence[tuple[int, bytes]],
) -> torch.Tensor:
    """`output` in the layout of `strides` with (byte offset, bytes) written over it."""
    like = {"dtype": output.dtype, "device": output.device}
    copy = torch.empty_strided(output.shape, tuple(strides), **like).copy_(output)
    raw = torch.as_strided(copy, (copy.numel(),), (1,)).view(torch.uint8)
    for offset, piece in given:
        new = torch.frombuffer(bytearray(piece), dtype=torch.uint8)
        raw[offset : offset + len(piece)] = new.to(raw.device)
    return copy
