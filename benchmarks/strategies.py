"""Search strategies compared at equal numbers of calls on landscapes recorded from ledgers.

    python -m benchmarks.strategies                         # the recorded landscapes, three arms
    python -m benchmarks.strategies --record OUT.json RUNS...   # a landscape from ledgers of yours

The real strategy (`agents/strategy.py`) moves on a landscape (`benchmarks/landscape.py`): speeds of
first candidates, gains of advised steps and shares of right ones are drawn from the record, and
seen with the noise of its clock. An advised step costs two calls (analyst, generator), any other
one. What counts is the true speed of the winner, as the confirming run would see it.
What it cannot show: gains are drawn independently of each other up to the roofline floor, and the
arm without an analyst draws from the same gains, as if advice were worth nothing.
"""

import argparse
import json
import math
import random
import statistics
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path

from agents.strategy import best_of, next_move
from benchmarks.landscape import Hill, Landscape, Share, landscapes, recorded
from data.records import (
    Candidate,
    Contract,
    Device,
    Iteration,
    LlmCall,
    Mode,
    Move,
    Operator,
    RunResult,
    RunStatus,
    Settings,
    Strategy,
    Timing,
)
from data.verdict import Verdict

BUDGETS = (6, 12, 24, 40)
"""Calls; the last is the default of `kforge port`."""
GAMES = 60
"""Searches an operator, arm and budget."""
RESAMPLES = 2000
DEVICE = Device(name="simulated", target="cpu", vendor="none", arch="none")


@dataclass(slots=True, kw_only=True)
class Game:
    """One search on one hill."""

    hill: Hill
    landscape: Landscape
    draw: random.Random
    true: dict[str, float] = field(default_factory=dict)
    """Speeds by candidate; the strategy sees them through noise."""

    def play(self, strategy: Strategy, calls: int) -> float:
        """The winner's speed-up within so many calls; 1 when nothing beats PyTorch, which stays."""
        settings = Settings(steps=calls, strategy=strategy, calls=calls)
        history: tuple[Iteration, ...] = ()
        left = calls
        while (move := next_move(history, settings)) and move.mode is not Mode.CONFIRM:
            advised = move.mode is Mode.OPTIMISE and strategy is Strategy.PAIR
            asked = ("analyst", "generator") if advised else ("generator",)
            left -= len(asked)
            if left < 0:
                break
            row = self._step(move, history)
            history = (*history, replace(row, calls=tuple(map(_call, asked))))
        best = best_of(history)
        return max(1.0, self.true[best.candidate_id or ""]) if best else 1.0

    def _step(self, move: Move, history: tuple[Iteration, ...]) -> Iteration:
        known = self.landscape
        shares = {Mode.FIX: known.mended, Mode.OPTIMISE: known.changed}
        if self.draw.random() >= shares.get(move.mode, known.created).value:
            return _row(move, None, self.hill)
        mine = best_of(tuple(i for i in history if i.move.lineage == move.lineage))
        base = self.true[mine.candidate_id or ""] if mine else None
        speed = base * self.draw.choice(known.gains) if base else self._first()
        speed = min(speed, self.hill.headroom)
        seen = speed * math.exp(self.draw.gauss(0.0, known.noise))
        row = _row(move, seen, self.hill)
        self.true[row.candidate_id or ""] = speed
        return row

    def _first(self) -> float:
        return self.hill.speed * math.exp(self.draw.gauss(0.0, self.landscape.spread))


def _call(role: str) -> LlmCall:
    """A call of which only the number counts."""
    return LlmCall(
        role=role,
        model="simulated",
        prompt_hash="",
        prompt="[]",
        reply=None,
        reasoning=None,
        finish_reason=None,
        parse_status="ok",
        prompt_tokens=None,
        cached_tokens=None,
        completion_tokens=None,
        reasoning_tokens=None,
        usage="{}",
    )


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
    return statistics.mean(math.log(game.play(arm, calls)) for _ in range(games))


def unreliable(landscape: Landscape) -> Landscape:
    """The same speeds and gains from an author who is often wrong, as models are.

    An assumption: 40 % of first candidates right, 50 % of mends, 60 % of changes.
    """
    return replace(
        landscape,
        name=f"{landscape.name}, unreliable",
        created=Share(right=40, tried=100),
        mended=Share(right=50, tried=100),
        changed=Share(right=60, tried=100),
    )


def main() -> None:
    """Prints a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--record", type=Path, metavar="OUT.json")
    parser.add_argument("--device", metavar="NAME", help="of the recorded steps; all if left out")
    parser.add_argument("ledgers", nargs="*", type=Path, metavar="RUNS")
    given = parser.parse_args()
    if given.record:
        found = recorded(given.record.stem, given.ledgers, given.device)
        given.record.write_text(json.dumps(asdict(found), indent=1) + "\n")
        return
    print("landscape | calls | arm / against | speeds | ratio of best speeds (95 %)")
    for landscape in landscapes():
        for played in (landscape, unreliable(landscape)):
            for calls in BUDGETS:
                for against in (Strategy.SAMPLING, Strategy.SINGLE):
                    _print(compare(played, calls, Strategy.PAIR, against))


def _print(c: Comparison) -> None:
    print(
        f"{c.landscape} | {c.calls} | {c.arm} / {c.against} | {c.speed:.2f} / "
        f"{c.speed_against:.2f} | {c.ratio:.3f} [{c.low:.3f}, {c.high:.3f}]",
        flush=True,
    )


if __name__ == "__main__":
    main()
