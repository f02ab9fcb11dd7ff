"""Spools: claims that survive dead workers, rows that cannot be cut, changed or counted twice."""

import asyncio
import os
import tarfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from data.errors import MachineError
from data.records import Device
from targets.machines.local import LocalMachine
from targets.remote import claims, pack
from targets.remote.claims import STALE_S, Claims, Holder, Lost
from targets.remote.jobs import Ask, Job, Refused, Row
from targets.remote.spool import Spool
from tasks.remote.judging import pointless
from tasks.remote.work import Worker, cannot, results
from tests.targets.rig import CPU


def job(subject: str, *, asks: int = 2, device: Device = CPU, archive: str = "a") -> Job:
    wanted = tuple(Ask(op="build", args={"n": f"{subject}{n}"}) for n in range(asks))
    return Job(archive=archive, device=device, asks=wanted, subject=subject)


class Judge:
    """A machine that answers at once, or as slowly as it is told."""

    def __init__(self, *, seconds: float = 0.0, broken: str = "") -> None:
        self.asked: list[str] = []
        self.seconds, self.broken = seconds, broken

    async def judge(self, op: str, args: Mapping[str, Any], deadline_s: float) -> Any:
        del op, deadline_s
        self.asked.append(args["n"])
        await asyncio.sleep(self.seconds)
        if self.broken and args["n"].startswith(self.broken):
            raise MachineError("the disk is full")
        return {"ok": True, "n": args["n"]}

    @asynccontextmanager
    async def turn(self, device: Device) -> AsyncIterator[None]:
        del device
        yield

    def close(self) -> None: ...


def worker(folder: Path, judge: Judge, **options: Any) -> Worker:
    said: list[str] = []
    options = {"archive": "a", "say": said.append, **options}
    return Worker(spool=Spool(folder), machine=cast("LocalMachine", judge), **options)


def said(of: Worker) -> str:
    return "\n".join(cast("Any", of.say).__self__)


def foreign(**changes: Any) -> Holder:
    """A worker of another host."""
    there = Holder(host="there", system="another boot", pid=1, born="1")
    return replace(there, **changes)


def plant(folder: Path, name: str, holder: Holder) -> Path:
    path = folder / "claims" / f"{name}.0001"
    path.parent.mkdir(parents=True, exist_ok=True)
    claims._write(path, holder)
    return path


def test_only_one_worker_gets_a_claim(tmp_path: Path) -> None:
    """A held job is nobody else's; a parked one is anybody's at once."""
    one, other = Claims(tmp_path), Claims(tmp_path)
    claim = one.take("job")
    assert claim is not None
    assert other.take("job") is None
    claim.park()
    again = other.take("job")
    assert again is not None
    with pytest.raises(Lost):
        claim.check()
    again.park()


def test_a_dead_process_of_this_system_is_succeeded_at_once(tmp_path: Path) -> None:
    """After kill -9 nobody waits; a pid that was given out again does not count as alive."""
    mine = claims.myself()
    plant(tmp_path, "gone", replace(mine, pid=2**22 + 1))
    plant(tmp_path, "reused", replace(mine, born="1"))
    looker = Claims(tmp_path / "claims")
    for name in ("gone", "reused"):
        claim = looker.take(name)
        assert claim is not None
        claim.park()


def test_a_silent_worker_elsewhere_is_succeeded_after_a_while(tmp_path: Path) -> None:
    """By the clock of whoever looks: the other host's clock may be an hour off."""
    clock = [0.0]
    looker = Claims(tmp_path / "claims", clock=lambda: clock[0])
    path = plant(tmp_path, "job", foreign())
    os.utime(path, (1.0, 1.0))
    assert looker.take("job") is None
    clock[0] = STALE_S - 1
    claims._write(path, foreign(beat=1))
    assert looker.take("job") is None
    assert looker.alive("job")
    clock[0] = 2 * STALE_S
    claim = looker.take("job")
    assert claim is not None
    claim.park()


def test_a_claim_that_is_being_written_is_no_dead_one(tmp_path: Path) -> None:
    """Between making the file and filling it there is a moment."""
    plant(tmp_path, "job", foreign()).write_bytes(b"")
    assert Claims(tmp_path / "claims").take("job") is None


async def test_several_workers_do_no_job_twice(tmp_path: Path) -> None:
    """Six at once over twenty jobs: each request is answered exactly once."""
    spool = Spool(tmp_path)
    for n in range(20):
        spool.post(job(f"j{n}"))
    judge = Judge(seconds=0.001)
    workers = [worker(tmp_path, judge) for _ in range(6)]
    await asyncio.gather(*(w._all() for w in workers))
    assert set(Counter(judge.asked).values()) == {1}
    assert len(judge.asked) == 40
    assert all(spool.ended(spool.job(name)) for name in spool.ids())


async def test_time_that_is_up_loses_nothing_that_was_done(tmp_path: Path) -> None:
    """The second run asks only for what the first had not answered."""
    Spool(tmp_path).post(job("long", asks=30))
    first = Judge(seconds=0.2)
    began = asyncio.get_running_loop().time()
    assert await worker(tmp_path, first).run(6.0) == 0
    assert asyncio.get_running_loop().time() - began < 6.0
    done = len(Spool(tmp_path).rows(job("long", asks=30)))
    assert 0 < done < 30
    second = Judge()
    assert await worker(tmp_path, second).run(None) == 0
    assert len(second.asked) == 30 - done


async def test_a_job_that_the_world_stopped_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails with a line and exit code 1; the others are done; the next run does it."""
    monkeypatch.setattr("tasks.remote.judging.patiently", lambda attempt: attempt())
    for name in ("bad", "good"):
        Spool(tmp_path).post(job(name))
    broken = worker(tmp_path, Judge(broken="bad"))
    assert await broken.run(None) == 1
    assert "failed: the disk is full" in said(broken)
    assert await worker(tmp_path, Judge()).run(None) == 0
    assert all(Spool(tmp_path).ended(job(name)) for name in ("bad", "good"))


async def test_what_cannot_be_done_here_is_said_once(tmp_path: Path) -> None:
    """Another archive, another target, a damaged job: one line each, the rest is done."""
    spool = Spool(tmp_path)
    alien = replace(CPU, name="x1", target="abacus")
    for one in (job("old", archive="b"), job("alien", device=alien), job("good")):
        spool.post(one)
    damaged = tmp_path / "jobs" / f"{job('hurt').id}.json"
    damaged.write_text('{"kind"')
    asked = worker(tmp_path, Judge())
    assert await asked.run(None) == 0
    text = said(asked)
    assert "it is for archive b, this is a; run kforge-remote-b.pyz" in text
    assert "no target 'abacus' in this archive" in text
    assert text.count("refused:") == 1
    assert "[1/4]" in text
    assert cannot(CPU) == ""


async def test_only_the_named_device_is_worked_for(tmp_path: Path) -> None:
    """`--device` leaves the jobs of others alone."""
    Spool(tmp_path).post(job("mine", device=replace(CPU, name="one")))
    Spool(tmp_path).post(job("other", device=replace(CPU, name="two")))
    judge = Judge()
    await worker(tmp_path, judge, device="one").run(None)
    assert judge.asked == ["mine0", "mine1"]


def rows_of(spool: Spool, one: Job) -> list[Any]:
    return [row.answer for row in spool.rows(one)]


def filled(folder: Path) -> tuple[Spool, Job]:
    spool, one = Spool(folder), job("one", asks=3)
    spool.post(one)
    for n in range(3):
        spool.put_row(Row(job=one.id, number=n, archive="a", answer=n))
    spool.end(one)
    return spool, one


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"\xff\xfe", b'{"job": "one", "numb'])
def test_a_damaged_row_is_refused_and_done_again(tmp_path: Path, damage: bytes) -> None:
    """Cut, emptied or changed: set aside with one line; the job is not done any more."""
    spool, one = filled(tmp_path)
    (path,) = tmp_path.glob("results/*/001-*")
    path.write_bytes(damage)
    assert rows_of(spool, one) == [0]
    (line,) = spool.refusals()
    assert "001-" in line
    assert not spool.ended(one)
    assert list(tmp_path.glob("refused/*001-*"))
    assert rows_of(spool, one) == [0]
    assert spool.refusals() == []


def test_somebody_elses_row_is_refused(tmp_path: Path) -> None:
    """Well made, but of another job, another archive, or never asked for."""
    spool, one = filled(tmp_path)
    for row in (
        Row(job="another", number=0, archive="a"),
        Row(job=one.id, number=1, archive="b"),
        Row(job=one.id, number=7, archive="a"),
    ):
        spool._seal(one.id, f"{row.number:03d}", row)
    assert rows_of(spool, one) == [0, 1, 2]
    lines = " ".join(spool.refusals())
    for why in ("belongs to job another", "archive b made it", "nobody asked for it"):
        assert why in lines


def test_a_job_has_not_ended_before_its_rows_are_there(tmp_path: Path) -> None:
    """A copying program may bring the last file first."""
    spool, one = filled(tmp_path)
    (path,) = tmp_path.glob("results/*/002-*")
    content = path.read_bytes()
    path.unlink()
    assert not spool.ended(one)
    path.write_bytes(content)
    assert spool.ended(one)


def test_the_same_row_of_two_workers_counts_once(tmp_path: Path) -> None:
    """Whoever was thought dead may still write."""
    spool, one = filled(tmp_path)
    spool.put_row(Row(job=one.id, number=1, archive="a", answer="late"))
    assert len(rows_of(spool, one)) == 3


def test_a_full_disk_is_the_worlds_fault(tmp_path: Path) -> None:
    """One line that names the file."""
    (tmp_path / "jobs").touch()
    with pytest.raises(MachineError, match=r"cannot write .*jobs"):
        Spool(tmp_path).post(job("one"))


def test_pointless_requests_are_left_out() -> None:
    """Nothing is measured that was not built, nothing is built for a refused operator."""
    admit, build, measure = (Ask(op=op, args={}) for op in ("admit", "build", "measure"))
    good, bad = {"outcome": None}, {"outcome": "TOO_LARGE"}
    assert pointless((admit,), [bad], build)
    assert pointless((admit, build), [bad, None], measure)
    assert pointless((admit, build), [good, {"ok": False}], measure)
    assert not pointless((admit, build, measure), [good, {"ok": False}, None], build)
    assert not pointless((admit, build), [good, {"ok": True}], measure)
    assert not pointless((), [], measure)


def test_a_tar_comes_back_whole_or_not_at_all(tmp_path: Path) -> None:
    """Cut at any place, changed, or something else: refused with a line that says what to do."""
    spool, _ = filled(tmp_path / "spool")
    path = tmp_path / "results.tar"
    pack.write(path, results(spool))
    found = pack.read(path)
    assert len(found) == 5
    content = path.read_bytes()
    for length in range(0, len(content.rstrip(b"\0")), 311):
        path.write_bytes(content[:length])
        with pytest.raises(Refused, match=r"cut off|no CONTENTS"):
            pack.read(path)
    path.write_bytes(content.replace(b'"answer": 1', b'"answer": 9'))
    with pytest.raises(Refused, match="damaged"):
        pack.read(path)
    with pytest.raises(Refused, match="is not there"):
        pack.read(tmp_path / "nothing.tar")


def test_a_tar_cannot_write_elsewhere(tmp_path: Path) -> None:
    """Links and places outside are refused."""
    (tmp_path / "file").write_text("x")
    pack.write(tmp_path / "evil.tar", {"../../evil": tmp_path / "file"})
    with pytest.raises(Refused, match="outside"):
        pack.read(tmp_path / "evil.tar")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with tarfile.open(tmp_path / "link.tar", "w") as tar:
        tar.add(tmp_path / "link", "CONTENTS.json")
    with pytest.raises(Refused, match="no plain file"):
        pack.read(tmp_path / "link.tar")
