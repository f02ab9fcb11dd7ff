"""What ledgers know of one author on one device, without the noise of its clock."""

import json
import math
import statistics
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from data.codec import decode
from data.records import Iteration, Mode
from data.store import Ledger

RECORDED = Path(__file__).parent / "landscapes"
STUDENT = 4.303
"""Half width of a 95 % interval from three pairs, in standard errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How often something was right."""

    right: int
    tried: int

    @property
    def value(self) -> float:
        """With one success and one failure more: few trials say neither never nor always."""
        return (self.right + 1) / (self.tried + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hill:
    """One operator."""

    operator: str
    speed: float
    """Of right first candidates: geometric mean of their speed-ups."""
    headroom: float
    """Highest speed-up: that of the roofline floor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """Speeds and gains as they are, and how noisily they were seen."""

    name: str
    hills: tuple[Hill, ...]
    spread: float
    """Standard deviation of the logarithms of an operator's first speeds, noise taken out."""
    noise: float
    """Standard error of the logarithm of one measured speed-up."""
    gains: tuple[float, ...]
    """Of right advised steps over their parents, noise taken out."""
    created: Share
    mended: Share
    changed: Share


def recorded(name: str, ledgers: list[Path], device: str | None = None) -> Landscape:
    """The landscape of all timed steps in some ledgers, of one device or of all."""
    rows = [r for folder in ledgers for r in _steps(folder) if device in (None, r.device.name)]
    first = [r for r in rows if r.move.mode is Mode.CREATE]
    changed = [r for r in rows if r.move.mode is Mode.OPTIMISE]
    noise = _noise([*first, *changed])
    speeds = _grouped(first)
    gains = [math.log(r.gain_over_parent) for r in changed if r.gain_over_parent]
    return Landscape(
        name=name,
        hills=tuple(_hill(same, changed) for same in speeds.values()),
        spread=round(_spread(list(speeds.values()), noise), 4),
        noise=round(noise, 4),
        gains=tuple(round(math.exp(g), 4) for g in _shrunk(gains, noise)),
        created=_share(first),
        mended=_share([r for r in rows if r.move.mode is Mode.FIX]),
        changed=_share(changed),
    )


def _steps(folder: Path) -> list[Iteration]:
    ledger = Ledger(folder)
    asked = "SELECT DISTINCT run_id, operator_hash, device FROM iterations ORDER BY ALL"
    pairs = ledger.connect().execute(asked).fetchall()
    rows = [row for pair in pairs for row in ledger.history(*pair)]
    return [r for r in rows if r.device.timed and r.candidate is not None]


def _grouped(rows: list[Iteration]) -> dict[str, list[Iteration]]:
    """Those with a speed, by operator."""
    timed = sorted((r for r in rows if r.speedup), key=lambda r: r.operator.name)
    return {name: list(same) for name, same in groupby(timed, key=lambda r: r.operator.name)}


def _hill(same: list[Iteration], changed: list[Iteration]) -> Hill:
    name = same[0].operator.name
    later = [r for r in changed if r.operator.name == name and r.speedup]
    return Hill(
        operator=name,
        speed=round(math.exp(statistics.mean(map(_log, same))), 4),
        headroom=round(max(map(_headroom, [*same, *later])), 4),
    )


def _log(row: Iteration) -> float:
    return math.log(row.speedup or 1.0)


def _noise(rows: list[Iteration]) -> float:
    """The median over the steps, from the intervals that they came with."""
    bounds = [(r.speedup_low, r.speedup_high) for r in rows]
    errors = [math.log(high / low) / 2 / STUDENT for low, high in bounds if low and high]
    return statistics.median(errors) if errors else 0.0


def _spread(operators: list[list[Iteration]], noise: float) -> float:
    """Within operators; 0 where no operator has two first candidates."""
    several = [list(map(_log, same)) for same in operators if len(same) > 1]
    seen = statistics.mean(map(statistics.variance, several)) if several else 0.0
    return math.sqrt(max(0.0, seen - noise**2))


def _shrunk(values: list[float], noise: float) -> list[float]:
    """The values drawn to their mean until noise is no part of their spread."""
    seen = statistics.pvariance(values) if values else 0.0
    if not seen:
        return values
    kept, middle = math.sqrt(max(0.0, seen - noise**2) / seen), statistics.mean(values)
    return [middle + kept * (v - middle) for v in values]


def _headroom(row: Iteration) -> float:
    """Speed-up of the floor: geometric mean over the shapes."""
    timings = row.run.timings if row.run else ()
    logs = [math.log(t.ratio * t.candidate_us / t.floor_us) for t in timings if t.floor_us]
    return math.exp(statistics.mean(logs)) if logs else math.inf


def _share(rows: list[Iteration]) -> Share:
    return Share(right=sum(r.right for r in rows), tried=len(rows))


def landscapes() -> list[Landscape]:
    """Those in `benchmarks/landscapes/`."""
    files = sorted(RECORDED.glob("*.json"))
    return [decode(Landscape, json.loads(file.read_text())) for file in files]
