"""Ports pairs with a model behind an endpoint and judges that cost nothing; can be killed.

As a program: `python -m tests.tasks.paying RUNS URL` ports one pair from its ledger on.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from agents.loop import port
from agents.price import Price
from data.records import Iteration, MeasureJob, Operator, Pair, RunResult, RunStatus
from data.store import Ledger
from tasks.crew import Crew
from tasks.generate import agents_for
from tasks.stages import now
from tests.agents.fakes import Scripted, pair, timing

ANSWER = "```python\nclass ModelNew:\n    def forward(self, x):\n        return x + {n}\n```"
PRICE = Price(input=1e-5, output=1e-4)
"""A call of the scripted server costs 4.6 cents, 10 cents and more at worst."""


@dataclass
class Bench(Scripted):
    """All sources are right, each a little faster than the one before."""

    async def measure(self, job: MeasureJob) -> RunResult:
        self.jobs.append(job)
        speed = timing(1.1 ** len(self.jobs))
        return RunResult(status=RunStatus.RAN, authored=True, timings=(speed,))


def crew(url: str, **more: object) -> Crew:
    asked = Crew(
        kind="llm", models=("openai/local",), api_base=url, price=PRICE, max_tokens=1000, usd=100.0
    )
    return replace(asked, **more)  # type: ignore[arg-type]  # fields by name


def subject(index: int, **settings: object) -> Pair:
    """Pairs of one run that differ in their operator."""
    made = pair(**settings)
    return replace(made, operator=Operator(name=f"op{index}", source=f"class Model: x = {index}"))


async def ported(subject: Pair, crew: Crew, ledger: Ledger) -> tuple[Iteration, ...]:
    """The pair's history when it has ended; each step is on record."""

    async def record(iteration: Iteration) -> None:
        ledger.append(iteration)

    agents = agents_for(crew, subject, ledger)
    known = ledger.history(subject.run_id, subject.operator.hash, subject.device.name)
    stages = replace(
        Bench([]).stages(),
        propose=agents.propose,
        advise=agents.advise,
        record=record,
        now=now,
    )
    return await port(subject, stages, known)


def numbered() -> Callable[[str], str]:
    """A reply that is another kernel each time."""
    numbers = count()
    return lambda _: ANSWER.format(n=next(numbers))


if __name__ == "__main__":
    runs, url = Path(sys.argv[1]), sys.argv[2]
    asyncio.run(ported(subject(0, steps=10), crew(url, calls=60), Ledger(runs)))
