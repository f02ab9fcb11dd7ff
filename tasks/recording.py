"""A campaign of the ledger as a file that can be replayed, and the campaign that replays it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agents.analyst import ROLE as ANALYST
from agents.author import REPLAY
from agents.generator import ROLE as GENERATOR
from agents.redaction import redact
from data import mirror
from data.errors import LedgerError, MisuseError
from data.recording import Recording, Said, bare, read, written
from data.records import Iteration, LlmCall, digest
from data.rows import CallKey
from data.store import Ledger
from tasks import devices
from tasks.asked import compilable
from tasks.campaign import Campaign, campaign_file, identify, read_campaign
from tasks.crew import Crew
from tasks.replay import recording_file


def record(runs: Path, run_id: str, out: Path) -> Recording:
    """Writes what the agents of a run said; the recording.

    MisuseError when there is no such run, or when no model was asked in it.
    """
    path = campaign_file(runs, run_id)
    if not path.exists():
        raise MisuseError(f"no campaign {run_id} is in {runs}; kforge query taken lists them")
    found = recorded(read_campaign(path), Ledger(runs))
    if not found.said:
        raise MisuseError(f"no model answered in {run_id}: offline agents need no recording")
    if all(model.startswith(f"{REPLAY}/") for model in found.models):
        raise MisuseError(f"{run_id} is a replay; its recording is in {runs / 'recordings'}")
    try:
        out.write_text(redact(written(found)), encoding="utf-8")
    except OSError as error:
        raise MisuseError(f"{out} cannot be written: {error.strerror}") from None
    return found


def recorded(campaign: Campaign, ledger: Ledger) -> Recording:
    """All that the agents of a campaign saw and said."""
    rows: list[Iteration] = []
    said: list[Said] = []
    for pair in sorted(campaign.pairs(), key=lambda p: p.name):
        place = (pair.run_id, pair.operator.hash, pair.device.name)
        history = ledger.history(*place)
        rows += [bare(row) for row in history]
        known = ledger.calls_of(*place)  # without the parser's word, as they are kept unread
        for key in sorted(known, key=lambda k: (k.step, k.role != ANALYST, k.lineage)):
            statuses = _statuses(history, key)
            said += [
                Said(key=key, call=replace(call, parse_status=statuses.get(n, call.parse_status)))
                for n, call in enumerate(known[key])
            ]
    crew = campaign.crew
    roles = {GENERATOR, ANALYST} if crew.kind == "llm" else set(crew.commands)
    return Recording(
        run_id=campaign.run_id,
        epoch=campaign.epoch,
        contract=campaign.contract,
        settings=campaign.settings,
        memory=campaign.memory,
        roles=tuple(sorted(roles)),
        rows=tuple(rows),
        said=tuple(said),
    )


def _statuses(history: Sequence[Iteration], key: CallKey) -> dict[int, str]:
    """What the parser said of each reply at a place, as far as a step came of it."""
    row = next((i for i in history if i.move.step == key.step), None)
    calls: tuple[LlmCall, ...] = row.calls if row else ()
    return dict(enumerate(c.parse_status for c in calls if c.role == key.role))


def replayed(
    file: Path, runs: str, operators: Sequence[str] = (), chosen: Sequence[str] = ()
) -> Campaign:
    """The campaign that replays a file, or those pairs of it; it is kept beside the ledger.

    MisuseError when the file is no recording or lacks an operator or device of that name.
    """
    recording = read(file)
    text = written(recording)
    known = {row.operator.name: row.operator for row in recording.rows}
    places = tuple(dict.fromkeys(row.device.name for row in recording.rows))
    campaign = Campaign(
        run_id="",
        epoch=recording.epoch,
        runs=str(mirror.folder(runs).absolute()),
        operators=tuple(known[n] for n in _named("operator", operators, tuple(known), file)),
        devices=devices.find(_named("device", chosen, places, file)),
        contract=recording.contract,
        settings=recording.settings,
        crew=Crew(kind=REPLAY, models=recording.models, recording=digest(text)),
        memory=recording.memory,
    )
    compilable(campaign)
    _keep(recording_file(Path(campaign.runs), digest(text)), text)
    return identify(campaign)


def _named(what: str, names: Sequence[str], known: tuple[str, ...], file: Path) -> tuple[str, ...]:
    """The names that were given, else all; MisuseError for one that is not on record."""
    for name in names:
        if name not in known:
            raise MisuseError(f"no {what} {name!r} is in {file}; it has {', '.join(known)}")
    return tuple(names) or known


def _keep(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"cannot write {path}: {error.strerror}") from error
