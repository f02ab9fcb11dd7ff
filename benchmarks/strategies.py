"""Search strategies compared at equal numbers of calls on landscapes recorded from ledgers.

    python -m benchmarks.strategies                         # the recorded landscapes, three arms
    python -m benchmarks.strategies --record OUT.json RUNS...   # a landscape from ledgers of yours

A landscape holds, for each operator, the speeds that right first candidates reached and the
headroom above them, and for the device the gains that advised steps brought, how often a first
candidate, a mend and a change were right. The real strategy (`agents/strategy.py`) moves on it;
what happens is drawn from the record. An advised step costs two calls (analyst, generator), any
other one.
What it cannot show: gains are drawn independently of each other up to the roofline floor, and the
arm without an analyst draws from the same gains, as if advice were worth nothing.
"""

import argparse
import json
import math
import random
import statistics
from dataclasses import asdict, dataclass
from itertools import count, groupby
from pathlib import Path

from agents.strategy import next_move
from data.codec import decode
from data.records import (
    Candidate,
    Contract,
    Device,
    Iteration,
    Mode,
    Move,
    Operator,
    RunResult,
    RunStatus,
    Settings,
    Strategy,
    Timing,
)
from data.store import Ledger
from data.verdict import Verdict

RECORDED = Path(__file__).parent / "landscapes"
BUDGETS = (6, 12, 24)
GAMES = 60
"""Searches an operator, arm and budget."""
RESAMPLES = 2000
DEVICE = Device(name="simulated", target="cpu", vendor="none", arch="none")


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
    first: tuple[float, ...]
    """Speed-ups of right first candidates."""
    headroom: float
    """Highest speed-up: that of the roofline floor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """What a ledger knows of one author on one device."""

    name: str
    hills: tuple[Hill, ...]
    gains: tuple[float, ...]
    """Of right advised steps over their parents."""
    created: Share
    mended: Share
    changed: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """One search on one hill."""

    hill: Hill
    landscape: Landscape
    draw: random.Random

    def play(self, strategy: Strategy, calls: int) -> float:
        """The best speed-up within so many calls; 1 when nothing is right: PyTorch stays."""
        settings = Settings(steps=calls, strategy=strategy)
        history: tuple[Iteration, ...] = ()
        spent = 0
        while (move := next_move(history, settings)) and move.mode is not Mode.CONFIRM:
            advised = move.mode is Mode.OPTIMISE and strategy is Strategy.PAIR
            spent += 2 if advised else 1
            if spent > calls:
                break
            history = (*history, self._step(move, history))
        return max((i.speedup or 1.0 for i in history), default=1.0)

    def _step(self, move: Move, history: tuple[Iteration, ...]) -> Iteration:
        parent = next((i for i in history if i.candidate_id == move.parent), None)
        known = self.landscape
        shares = {Mode.FIX: known.mended, Mode.OPTIMISE: known.changed}
        right = self.draw.random() < shares.get(move.mode, known.created).value
        base = parent.speedup if parent and parent.speedup else None
        speed = base * self.draw.choice(known.gains) if base else self._first()
        return _row(move, min(speed, self.hill.headroom) if right else None, self.hill)

    def _first(self) -> float:
        """A recorded speed with the spread that first candidates of one operator have."""
        return self.draw.choice(self.hill.first) * math.exp(self.draw.gauss(0.0, self._spread()))

    def _spread(self) -> float:
        several = [h.first for h in self.landscape.hills if len(h.first) > 1]
        logs = [statistics.pstdev(map(math.log, first)) for first in several]
        return statistics.mean(logs) if logs else 0.0


_NUMBERS = count()


def _row(move: Move, speed: float | None, hill: Hill) -> Iteration:
    made = Candidate(
        source=f"# {next(_NUMBERS)}", language="cpp", agent_kind="simulated", agent_name="simulated"
    )
    run = RunResult(status=RunStatus.WRONG)
    if speed is not None:
        run = RunResult(status=RunStatus.RAN, timings=(_timing(speed, hill.headroom),))
    return Iteration(
        run_id="simulated",
        epoch="simulated",
        operator=Operator(name=hill.operator, source=hill.operator),
        device=DEVICE,
        contract=Contract(),
        move=move,
        verdict=Verdict.CORRECT if speed is not None else Verdict.WRONG,
        reason="",
        candidate=made,
        run=run,
        speedup=speed,
        baseline="eager" if speed is not None else None,
    )


def _timing(speed: float, headroom: float) -> Timing:
    return Timing(
        shape="full",
        baseline="eager",
        ratio=speed,
        low=speed,
        high=speed,
        pair_ratios=(speed,),
        candidate_us=1000 / speed,
        baseline_us=1000.0,
        floor_us=1000 / headroom,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two arms at equal calls: the ratio of their best speeds, over operators."""

    landscape: str
    calls: int
    arm: str
    against: str
    ratio: float
    """Geometric mean over operators of mean log best speed; above 1 the arm is better."""
    low: float
    high: float
    """95 % interval, operators resampled."""
    speed: float
    speed_against: float


def compare(
    landscape: Landscape, calls: int, arm: Strategy, against: Strategy, *, games: int = GAMES
) -> Comparison:
    """The arm against another; the same seeds give the same numbers."""
    logs = [_mean_log(landscape, hill, calls, arm, games) for hill in landscape.hills]
    others = [_mean_log(landscape, hill, calls, against, games) for hill in landscape.hills]
    differences = [a - b for a, b in zip(logs, others, strict=True)]
    draw = random.Random(0)
    means = sorted(
        statistics.mean(draw.choices(differences, k=len(differences))) for _ in range(RESAMPLES)
    )
    return Comparison(
        landscape=landscape.name,
        calls=calls,
        arm=str(arm),
        against=str(against),
        ratio=math.exp(statistics.mean(differences)),
        low=math.exp(means[int(0.025 * RESAMPLES)]),
        high=math.exp(means[int(0.975 * RESAMPLES)]),
        speed=math.exp(statistics.mean(logs)),
        speed_against=math.exp(statistics.mean(others)),
    )


def _mean_log(landscape: Landscape, hill: Hill, calls: int, arm: Strategy, games: int) -> float:
    draw = random.Random(f"{hill.operator}:{calls}:{arm}")
    game = Game(hill=hill, landscape=landscape, draw=draw)
    return statistics.mean(math.log(max(1.0, game.play(arm, calls))) for _ in range(games))


def recorded(name: str, ledgers: list[Path]) -> Landscape:
    """The landscape of all timed steps in some ledgers."""
    rows = [row for folder in ledgers for row in _steps(folder)]
    first = [r for r in rows if r.move.mode is Mode.CREATE]
    changed = [r for r in rows if r.move.mode is Mode.OPTIMISE]
    timed = sorted((r for r in first if r.speedup), key=lambda r: r.operator.name)
    hills = []
    for operator, same in groupby(timed, key=lambda r: r.operator.name):
        group = list(same)
        speeds = tuple(round(r.speedup, 4) for r in group if r.speedup)
        headroom = max(_headroom(r) for r in [*group, *_of(changed, operator)])
        hills.append(Hill(operator=operator, first=speeds, headroom=round(headroom, 4)))
    return Landscape(
        name=name,
        hills=tuple(hills),
        gains=tuple(round(r.gain_over_parent, 4) for r in changed if r.gain_over_parent),
        created=_share(first),
        mended=_share([r for r in rows if r.move.mode is Mode.FIX]),
        changed=_share(changed),
    )


def _of(rows: list[Iteration], operator: str) -> list[Iteration]:
    return [r for r in rows if r.operator.name == operator and r.speedup]


def _steps(folder: Path) -> list[Iteration]:
    ledger = Ledger(folder)
    asked = "SELECT DISTINCT run_id, operator_hash, device FROM iterations ORDER BY ALL"
    pairs = ledger.connect().execute(asked).fetchall()
    rows = [row for pair in pairs for row in ledger.history(*pair)]
    return [r for r in rows if r.device.timed and r.candidate is not None]


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


def main() -> None:
    """Prints a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--record", type=Path, metavar="OUT.json")
    parser.add_argument("ledgers", nargs="*", type=Path, metavar="RUNS")
    given = parser.parse_args()
    if given.record:
        found = recorded(given.record.stem, given.ledgers)
        given.record.write_text(json.dumps(asdict(found), indent=1) + "\n")
        return
    print("landscape | calls | arm / against | speeds | ratio of best speeds (95 %)")
    for landscape in landscapes():
        for calls in BUDGETS:
            for against in (Strategy.SAMPLING, Strategy.SINGLE):
                c = compare(landscape, calls, Strategy.PAIR, against)
                print(
                    f"{c.landscape} | {c.calls} | {c.arm} / {c.against} | {c.speed:.2f} / "
                    f"{c.speed_against:.2f} | {c.ratio:.3f} [{c.low:.3f}, {c.high:.3f}]"
                )


if __name__ == "__main__":
    main()
