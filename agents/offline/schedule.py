"""The choices that a fused kernel leaves open."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How a nest is turned into loops; every combination is right."""

    width: int = 16
    """Floats in a vector: 16, 8 or 4."""
    unroll: int = 4
    """Vectors in flight, and accumulators of a reduction."""
    stream: bool = False
    """Results go past the caches."""
    keep: bool = True
    """Costly intermediate values stay in a buffer between passes over a row."""
    chunk: int = 16384
    """Elements that a thread takes at once where nothing is reduced."""
    prefetch: int = 0
    """Floats ahead; 0 leaves it to the hardware."""
