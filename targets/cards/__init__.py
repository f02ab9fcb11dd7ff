"""Data sheets of devices: peaks, caches and limits, each file with its sources.

`kforge devices` and `--device NAME` know these names without a `devices.toml`. The figures are the
vendor's, dense; where the device is at hand, measured peaks take their place.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from data.records import Card


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one unit (SM, CU, Xe core, GPU core) has for its groups; None where nobody says."""

    shared_bytes_per_group: int
    threads_per_group: int
    registers: int | None = None
    """32-bit vector registers, counted a lane."""
    register_step: int | None = None
    """Registers are given to a sub-group in multiples of this."""
    registers_per_thread: int | None = None
    shared_bytes: int | None = None
    shared_reserved_bytes: int = 0
    """Taken by the system for each group."""
    threads: int | None = None
    groups: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One device as its vendor describes it."""

    name: str
    title: str
    target: str
    arch: str
    peak_gb_s: float
    peak_tflop_s: dict[str, float]
    """By dtype, without sparsity."""
    memory_gib: float
    cache_mib: float
    """The last level before main memory."""
    units: int
    unit: str
    """What the vendor calls a unit."""
    sub_groups: tuple[int, ...]
    """Widths, the usual one first."""
    limits: Limits
    sources: tuple[str, ...]

    @property
    def model(self) -> str:
        """The words of the title with which a driver names the device."""
        return self.title.split(",")[0].partition(" SXM")[0]

    @property
    def card(self) -> Card:
        return Card(
            peak_gb_s=self.peak_gb_s,
            peak_tflop_s=self.peak_tflop_s,
            memory_gib=self.memory_gib,
            cores=self.units,
            cache_mib=self.cache_mib,
            simd=f"{self.sub_groups[0]} lanes",
        )


@cache
def sheets() -> dict[str, Sheet]:
    """All data sheets by name."""
    found = (f for f in files(__name__).iterdir() if f.name.endswith(".toml"))
    named = {f.name.removesuffix(".toml"): tomllib.loads(f.read_text()) for f in found}
    return {name: _sheet(name, named[name]) for name in sorted(named)}


def for_arch(arch: str) -> Sheet | None:
    """A device of that architecture: its limits hold for all of them; `sm_90a` is `sm_90`.

    >>> for_arch("sm_90").limits.shared_bytes // 1024
    228
    """
    plain = arch.removesuffix("a")
    return next((s for s in sheets().values() if s.arch.removesuffix("a") == plain), None)


def _sheet(name: str, fields: dict[str, object]) -> Sheet:
    limits, sub_groups, sources = (fields.pop(k) for k in ("limits", "sub_groups", "sources"))
    return Sheet(
        name=name,
        limits=Limits(**limits),  # type: ignore[arg-type]  # tests/targets/test_cards.py
        sub_groups=tuple(sub_groups),  # type: ignore[arg-type]
        sources=tuple(sources),  # type: ignore[arg-type]
        **fields,  # type: ignore[arg-type]
    )
