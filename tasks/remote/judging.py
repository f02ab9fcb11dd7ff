"""Jobs of kind `judge`: requests answered in order by this machine's judge."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from targets.machines.local import LocalMachine
from targets.remote.jobs import Ask, Job
from tasks.lease import leased
from tasks.retry import patiently

Answers = tuple[Any, ...]
Keep = Callable[[int, Any], Awaitable[None]]
DEADLINE_S = {"admit": 300.0, "build": 180.0}
SLACK_S = 60.0
"""Above a measurement's own deadline: the judge must be the first to say that time is up."""


async def answer_all(job: Job, machine: LocalMachine, known: Answers, keep: Keep) -> None:
    """Answers what is not answered yet; a request that has become pointless gets None."""
    answers = list(known)
    for number in range(len(known), len(job.asks)):
        ask = job.asks[number]
        if pointless(job.asks[:number], answers, ask):
            answers.append(None)
        else:
            answers.append(await _answer(job, machine, ask))
        await keep(number, answers[-1])


def pointless(before: Sequence[Ask], answers: Sequence[Any], ask: Ask) -> bool:
    """Whether the operator was refused, or what is to be measured was not built."""
    latest = {earlier.op: answer for earlier, answer in zip(before, answers, strict=True)}
    if "admit" in latest and (latest["admit"] or {"outcome": "?"})["outcome"] is not None:
        return True
    build = latest.get("build", {"ok": True})
    return ask.op == "measure" and not (build or {"ok": False})["ok"]


async def _answer(job: Job, machine: LocalMachine, ask: Ask) -> Any:
    deadline_s = DEADLINE_S.get(ask.op) or float(ask.args.get("deadline_s", 120.0)) + SLACK_S
    answer = partial(machine.judge, ask.op, ask.args, deadline_s)
    timed = ask.op in ("measure", "probe") or bool(ask.args.get("timed"))
    return await (leased(machine, job.device, answer) if timed else patiently(answer))
