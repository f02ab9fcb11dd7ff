"""A campaign once more from its recording: the same prompts get the recorded replies, in order.

The judge measures anew. What the agents see and what the search rests on is the recorded history,
so that a time that differs from run to run leads nowhere else; a verdict that differs ends it.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from agents.author import REPLAY
from agents.likeness import difference
from agents.llm import Question
from agents.loop import Iterate, Stages
from agents.reply import ParseStatus
from agents.strategy import finished
from agents.wire import UNTOUCHED
from data.errors import BudgetError, ContextError, ReplayError
from data.recording import Recording, read
from data.records import (
    Admission,
    Counsel,
    Iteration,
    LlmCall,
    Mode,
    Move,
    Pair,
    Profile,
    Proposal,
    Request,
)
from data.rows import CallKey

FOLDER = "recordings"
"""Of a ledger, for what is replayed into it: a worker reads it there."""

History = tuple[Iteration, ...]
DONE = (ParseStatus.OK, ParseStatus.REFUSED)
"""Replies after which nobody asks for a better form."""


def recording_file(runs: Path, key: str) -> Path:
    """Where the recording of that hash lies below a ledger."""
    return runs / FOLDER / f"{key}.json"


def kept_recording(runs: Path, key: str) -> Recording:
    """The recording that a campaign of this ledger replays; read once for all its pairs."""
    return _kept(recording_file(runs, key))


@lru_cache(maxsize=4)
def _kept(path: Path) -> Recording:
    return read(path)


class Script:
    """What is on record of one pair."""

    def __init__(self, recording: Recording, pair: Pair) -> None:
        self._name = pair.name
        place = (pair.operator.hash, pair.device.name)
        mine = [s for s in recording.said if (s.key.operator_hash, s.key.device) == place]
        self.rows = tuple(
            replace(r, calls=tuple(s.call for s in mine if s.key.step == r.move.step))
            for r in recording.rows
            if (r.operator.hash, r.device.name) == place
        )
        self._said: dict[CallKey, list[LlmCall]] = {}
        for said in mine:
            key = replace(said.key, run_id=pair.run_id)
            self._said.setdefault(key, []).append(said.call)
        self._priced = any(s.call.price for s in recording.said)
        """Whether dollars could end one lineage's search and leave room for another's."""
        self._shorter: dict[CallKey, str] = {}
        """How the whole prompt differed, where a shorter one may have been sent."""

    async def answer(
        self,
        key: CallKey,
        sample: int,
        question: Question,
    ) -> LlmCall:
        """The recorded reply to the n-th question at a place, as nobody's cost.

        ReplayError where another prompt is on record, or none. BudgetError where the recorded
        search ended, ContextError once where the recorded prompt may be the shorter one.
        """
        known = self._said.get(key, [])
        if sample >= len(known):
            raise self._unsaid(key, known)
        call = known[sample]
        differs = difference(json.loads(call.prompt), question.messages)
        if differs is None:
            return _played(call)
        repairing = any(m["role"] == "assistant" for m in question.messages)
        if not repairing and key not in self._shorter:
            self._shorter[key] = differs
            raise ContextError(differs)
        found = differs if repairing else self._shorter[key]
        raise ReplayError(f"{self._place(key)}: another prompt is on record; first in {found}")

    def _unsaid(self, key: CallKey, known: Sequence[LlmCall]) -> Exception:
        """Why there is no reply: the search ended here, or the replay left the recording."""
        row = self.at(key.step)
        if known and known[-1].parse_status not in DONE:
            return BudgetError("no repair turn is on record")
        if known:
            was = known[-1].parse_status
            return ReplayError(f"{self._place(key)}: asks again, but the recorded reply was {was}")
        if row is not None and row.candidate is None:
            return BudgetError(row.reason)
        other = row is not None and row.move.lineage != key.lineage
        if other and self._priced:
            return BudgetError("the recorded money was spent for this lineage")
        if row is not None and row.move.mode is not Mode.CONFIRM:
            return ReplayError(f"{self._place(key)}: on record is {_told(row.move)}")
        if row is None and not self.ended:
            return ReplayError(
                f"{self._place(key)}: the recorded campaign was cut here; finish it first"
            )
        return BudgetError("the recorded search ended here")

    def _place(self, key: CallKey) -> str:
        return f"{self._name}, step {key.step}, lineage {key.lineage}, {key.role}"

    @property
    def ended(self) -> bool:
        """Whether the recorded campaign came to its end."""
        return finished(self.rows)

    def at(self, step: int) -> Iteration | None:
        """The recorded step of that number."""
        return next((row for row in self.rows if row.move.step == step), None)

    def agreed(self, row: Iteration) -> Iteration:
        """The recorded step that a step of the replay repeats; ReplayError when it does not."""
        recorded = self.at(row.move.step)
        place = f"{self._name}, step {row.move.step}"
        if recorded is None:
            raise ReplayError(f"{place}: {_told(row.move)} is not on record")
        if recorded.move != row.move:
            raise ReplayError(
                f"{place}: on record is {_told(recorded.move)}, now {_told(row.move)}"
            )
        if recorded.candidate_id != row.candidate_id:
            raise ReplayError(f"{place}: another source than on record came of the reply")
        if recorded.verdict != row.verdict and not (recorded.right and row.right):
            raise ReplayError(
                f"{place}: {recorded.verdict} is on record, now {row.verdict}: {row.reason}"
            )
        return recorded


class Replay:
    """The loop of one pair led along its recording; its own rows are what goes on record."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._own: dict[int, Iteration] = {}

    def seen(self, known: History) -> History:
        """The recorded steps that the known ones repeat."""
        self._own |= {row.move.step: row for row in known}
        return tuple(self._script.agreed(row) for row in known)

    def along(self, iterate: Iterate) -> Iterate:
        """`iterate` for the loop: it judges the replay's steps and returns the recorded ones."""

        async def followed(
            pair: Pair, admission: Admission, stages: Stages, move: Move, history: History
        ) -> Iteration | None:
            own = tuple(self._own[row.move.step] for row in history)
            row = await iterate(pair, admission, _shown(stages, history), move, own)
            if row is None:
                return None
            self._own[row.move.step] = row
            return self._script.agreed(row)

        return followed

    def ended(self, history: History) -> History:
        """The replay's own steps; ReplayError when they are fewer than those on record."""
        own = tuple(self._own.get(row.move.step, row) for row in history)
        if len(own) < len(self._script.rows):
            last = own[-1]
            raise ReplayError(
                f"{last.operator.name}@{last.device.name}, step {last.move.step}: ended here with "
                f"{last.verdict} ({last.reason}); the recording has {len(self._script.rows)} steps"
            )
        return own


def replay_of(pair: Pair, runs: Path, recording: str | None) -> Replay | None:
    """What leads the pair along that recording of a ledger; None for a campaign of its own."""
    return Replay(Script(kept_recording(runs, recording), pair)) if recording else None


def _shown(stages: Stages, history: History) -> Stages:
    """The stages with agents that see the recorded history instead of the replay's own."""

    async def propose(request: Request) -> Proposal:
        return await stages.propose(replace(request, history=history))

    async def advise(request: Request) -> Counsel:
        seen = replace(request, history=history)
        return await stages.advise(replace(seen, profile=_profile(seen) or request.profile))

    return replace(stages, propose=propose, advise=advise)


def _profile(request: Request) -> Profile | None:
    """What the analyst was shown of the move's parent when it was recorded."""
    rows = (i for i in request.history if i.candidate_id == request.move.parent and i.profile)
    return next((row.profile for row in rows), None)


def _played(call: LlmCall) -> LlmCall:
    """The recorded call as one that nobody was asked and nothing was paid for."""
    return replace(
        call,
        model=f"{REPLAY}/{call.model}",
        parse_status=UNTOUCHED,
        prompt_tokens=0,
        cached_tokens=0,
        completion_tokens=0,
        reasoning_tokens=0,
        usage="{}",
        price={},
        cost_usd=0.0,
        attempts=0,
        seconds=0.0,
    )


def _told(move: Move) -> str:
    return f"{move.mode} in lineage {move.lineage or '-'}"
