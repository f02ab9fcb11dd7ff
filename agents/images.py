"""Pictures for models that can see: their size, their cost in tokens, their form on the wire."""

import base64
import hashlib
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from data.errors import MisuseError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_BYTES = 5_000_000
"""Anthropic's limit for one picture, the smallest of the large providers."""
MOST_PIXELS = 8000
"""Of a side, by the same."""
TILE, TILE_TOKENS, BASE_TOKENS = 512, 170, 85
"""OpenAI counts a picture in tiles; Anthropic's width x height / 750 gives less."""
DEARER = {"gpt-4o-mini": 33.4}
"""Models that count a picture's tokens many times (OpenAI: 2,833 and 5,667 a tile)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A PNG and what it shows."""

    caption: str
    png: bytes

    @property
    def name(self) -> str:
        """What the record calls it: caption and hash."""
        return f"{self.caption} {hashlib.sha256(self.png).hexdigest()[:16]}"

    @property
    def tokens(self) -> int:
        """About how many it counts, for most models."""
        width, height = size(self.png)
        tiles = math.ceil(width / TILE) * math.ceil(height / TILE)
        return max(BASE_TOKENS + TILE_TOKENS * tiles, round(width * height / 750))

    @property
    def uri(self) -> str:
        """Itself as an address."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"


def size(png: bytes) -> tuple[int, int]:
    r"""Width and height in pixels; MisuseError when it is no PNG that providers take.

    >>> size(SIGNATURE + b"\0\0\0\rIHDR" + struct.pack(">II", 640, 480))
    (640, 480)
    """
    if not png.startswith(SIGNATURE) or png[12:16] != b"IHDR" or len(png) < 24:
        raise MisuseError("it is no PNG")
    width, height = struct.unpack(">II", png[16:24])
    if len(png) > MOST_BYTES or not 0 < max(width, height) <= MOST_PIXELS:
        raise MisuseError(
            f"it has {len(png)} bytes and {width} x {height} pixels; models take at most"
            f" {MOST_BYTES} bytes and {MOST_PIXELS} pixels a side"
        )
    return width, height


def tokens_for(model: str, images: Sequence[Image]) -> int:
    """About how many tokens the pictures count for this model."""
    factor = next((f for name, f in DEARER.items() if name in model), 1.0)
    return math.ceil(factor * sum(image.tokens for image in images))
