"""The least time that one call can take on a device: a pure function of its cost."""

from __future__ import annotations

from data.records import Card, Contract, Policy

MEASURED_AS = {
    Policy.STRICT: ("float32",),
    Policy.TF32: ("tf32", "float32"),
    Policy.HALF: ("float16", "bfloat16", "float32"),
}
"""Peaks that a policy allows for float32 operators, the one meant first."""


def floor_us(
    flops: float | None, moved_bytes: float, card: Card, contract: Contract, *, dtype: str
) -> float | None:
    """Roofline floor in microseconds; None where the device's bandwidth is unknown.

    With unknown `flops` it is the time to move the bytes alone, which is still a floor. `dtype`
    is that of the operator's floating tensors.

    >>> card = Card(peak_gb_s=10.0, peak_tflop_s={"float32": 0.1})
    >>> floor_us(1e6, 1e6, card, Contract(), dtype="float32")
    100.0
    >>> floor_us(1e9, 1e6, card, Contract(), dtype="float32")
    10000.0
    """
    if card.peak_gb_s <= 0:
        return None
    memory = moved_bytes / (card.peak_gb_s * 1e3)
    peak = peak_tflop_s(card, contract, dtype)
    if flops is None or peak is None:
        return memory
    return max(memory, flops / (peak * 1e6))


def peak_tflop_s(card: Card, contract: Contract, dtype: str) -> float | None:
    """The peak that the contract allows for `dtype`; None where it was not measured."""
    names = MEASURED_AS[contract.policy] if dtype == "float32" else (dtype, "float32")
    found = (card.peak_tflop_s.get(name) for name in names)
    return next((peak for peak in found if peak), None)
