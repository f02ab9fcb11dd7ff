"""A picture in memory: lines, dots and text, written as PNG by zlib alone."""

import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Colour = tuple[int, int, int]
Point = tuple[float, float]
"""Right and down, in pixels."""

WHITE: Colour = (255, 255, 255)
BLACK: Colour = (30, 30, 30)
GREY: Colour = (150, 150, 150)
PALE: Colour = (228, 228, 228)
BLUE: Colour = (25, 90, 170)
RED: Colour = (200, 40, 30)

WIDE, HIGH = 6, 8
"""Pixels of a letter's cell before it is enlarged."""
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FONT = bytes.fromhex(
    """
    0000000000 00005f0000 0007000700 147f147f14 242a7f2a12 2313086462 3649562050 0008070300
    001c224100 0041221c00 2a1c7f1c2a 08083e0808 0080703000 0808080808 0000606000 2010080402
    3e5149453e 00427f4000 7249494946 2141494d33 1814127f10 2745454539 3c4a494931 4121110907
    3649494936 464949291e 0000140000 0040340000 0008142241 1414141414 0041221408 0201590906
    3e415d594e 7c1211127c 7f49494936 3e41414122 7f4141413e 7f49494941 7f09090901 3e41415173
    7f0808087f 00417f4100 2040413f01 7f08142241 7f40404040 7f021c027f 7f0408107f 3e4141413e
    7f09090906 3e4151215e 7f09192946 2649494932 03017f0103 3f4040403f 1f2040201f 3f4038403f
    6314081463 0304780403 6159494d43 007f414141 0204081020 004141417f 0402010204 4040404040
    0003070800 2054547840 7f28444438 3844444428 384444287f 3854545418 00087e0902 18a4a49c78
    7f08040478 00447d4000 2040403d00 7f10284400 00417f4000 7c04780478 7c08040478 3844444438
    fc18242418 18242418fc 7c08040408 4854545424 04043f4424 3c4040207c 1c2040201c 3c4030403c
    4428102844 4c9090907c 4464544c44 0008364100 0000770000 0041360800 0201020402
    """
)
"""Five columns a letter from the blank to the tilde, the lowest bit on top: the 5x7 shapes of
character displays."""


class Canvas:
    """White at first; what is drawn later lies above."""

    def __init__(self, width: int, height: int) -> None:
        self._pixels: Floats = np.full((height, width, 3), 255.0)

    def line(
        self, start: Point, end: Point, colour: Colour, *, width: float = 1.5, dashed: bool = False
    ) -> None:
        """A straight line with soft edges."""
        (x, y), (dx, dy) = start, (end[0] - start[0], end[1] - start[1])
        length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
        part, right, down = self._near((x, x + dx), (y, y + dy), width)
        right, down = right - x, down - y
        along = np.clip((right * dx + down * dy) / length, 0.0, length)
        away = np.hypot(right - along * dx / length, down - along * dy / length)
        cover = np.clip(width / 2 + 0.5 - away, 0.0, 1.0)
        _blend(part, cover * (along % 12 < 7) if dashed else cover, colour)

    def dot(self, centre: Point, radius: float, colour: Colour, *, hollow: bool = False) -> None:
        """A disc, or a ring with a white inside."""
        (x, y) = centre
        part, right, down = self._near((x, x), (y, y), radius)
        away = np.hypot(right - x, down - y)
        _blend(part, np.clip(radius + 0.5 - away, 0.0, 1.0), colour)
        if hollow:
            _blend(part, np.clip(radius - 1.5 - away, 0.0, 1.0), WHITE)

    def text(self, place: Point, words: str, colour: Colour = BLACK, *, scale: int = 2) -> None:
        """One line of ASCII from its upper left corner, on pale ground; the rest is cut off."""
        cells = [_letter(c) for c in words.encode("ascii", "replace").decode()]
        if not cells:
            return
        mask = np.concatenate(cells, axis=1).repeat(scale, axis=0).repeat(scale, axis=1)
        x, y = (max(0, round(v)) for v in place)
        part = self._pixels[y : y + mask.shape[0], x : x + mask.shape[1]]
        _blend(part, np.full(part.shape[:2], 0.75), WHITE)
        _blend(part, mask[: part.shape[0], : part.shape[1]], colour)

    def _near(
        self, rights: tuple[float, float], downs: tuple[float, float], margin: float
    ) -> tuple[Floats, Floats, Floats]:
        """The pixels around a box, to be painted over, and how far right and down each lies."""
        left, top = (max(0, int(min(ends) - margin - 1)) for ends in (rights, downs))
        right, bottom = (max(0, int(max(ends) + margin + 2)) for ends in (rights, downs))
        part = self._pixels[top:bottom, left:right]
        down, across = np.mgrid[top : top + part.shape[0], left : left + part.shape[1]]
        return part, across.astype(float), down.astype(float)

    def png(self) -> bytes:
        """The picture as a file; the same picture is the same bytes."""
        pixels = np.clip(np.rint(self._pixels), 0, 255).astype(np.uint8)
        height, width, _ = pixels.shape
        rows = b"".join(b"\0" + row.tobytes() for row in pixels)
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits of RGB, plain
        chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
        return SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def _blend(part: Floats, cover: Floats, colour: Colour) -> None:
    """Paints over the part, as far as `cover` says."""
    part[:] += cover[..., None] * (np.array(colour, float) - part)


def extent(words: str, *, scale: int = 2) -> int:
    """Pixels that a line of text is wide."""
    return WIDE * scale * len(words)


def _chunk(name: bytes, data: bytes) -> bytes:
    check = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)


def _letter(character: str) -> Floats:
    """Its cell: 1 where there is ink."""
    at = ord(character) - ord(" ")
    columns: Sequence[int] = (
        _FONT[5 * at : 5 * at + 5] if 0 <= at < len(_FONT) // 5 else b"\x7f" * 5
    )
    cell = np.zeros((HIGH, WIDE))
    for right, bits in enumerate(columns):
        for down in range(HIGH):
            cell[down, right] = bits >> down & 1
    return cell
