"""A ledger on S3: several machines, one truth."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from data import mirror, views
from data.errors import LedgerError, MisuseError
from data.store import Ledger
from tests.data.samples import plain
from tests.targets.machines.amazon import amazon

KFORGE = Path(sys.executable).with_name("kforge")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with amazon() as url:
        boto3.client("s3").create_bucket(Bucket="ledgers")
        mirror._store.cache_clear()
        yield url
    mirror._store.cache_clear()


def ledger(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str) -> Ledger:
    """The ledger as another machine sees it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))
    return Ledger(mirror.folder(f"s3://ledgers/{name}/"))


def keys(name: str) -> list[str]:
    found = boto3.client("s3").list_objects_v2(Bucket="ledgers", Prefix=f"{name}/")
    return [o["Key"] for o in found.get("Contents", ())]


def steps(of: Ledger) -> list[int]:
    sample = plain(0)
    found = of.history(sample.run_id, sample.operator.hash, sample.device.name)
    return [i.move.step for i in found]


@pytest.mark.net
@pytest.mark.usefixtures("server")
def test_two_machines_share_one_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sees at once what the other has appended and compacted; nothing is there twice."""
    one = ledger("shared", tmp_path, monkeypatch, "one")
    other = ledger("shared", tmp_path, monkeypatch, "other")
    one.ensure_writable()
    for n in range(3):
        (one if n % 2 else other).append(plain(n))
    assert steps(one) == steps(other) == [0, 1, 2]
    sample = plain(0)
    one.compact(sample.run_id, sample.operator.hash, sample.device.name)
    other.append(plain(3))
    assert steps(one) == steps(other) == [0, 1, 2, 3]
    merged = [
        k for k in keys("shared") if k.startswith("shared/iterations/") and k.endswith(".parquet")
    ]
    assert len(merged) == 2
    count = views.query(other.root, "SELECT count(*) AS n FROM iterations").to_pylist()
    assert count == [{"n": 4}]


@pytest.mark.net
@pytest.mark.usefixtures("server")
def test_a_lost_copy_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder here is a copy: a new machine starts with what S3 holds."""
    ledger("lost", tmp_path, monkeypatch, "one").append(plain(0))
    assert steps(ledger("lost", tmp_path, monkeypatch, "new")) == [0]


@pytest.mark.net
def test_the_command_line_takes_a_prefix(server: str, tmp_path: Path) -> None:
    """`--runs s3://BUCKET/PREFIX` of any command, with any endpoint; a missing bucket is named."""
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "AWS_ENDPOINT_URL": server}
    for place, code, said in (
        ("s3://ledgers/cli", 0, '{"n": 0}'),
        ("s3://nowhere/cli", 1, "the ledger at s3://nowhere/cli cannot be reached"),
        ("s3://", 2, "names no bucket"),
    ):
        words = ("query", "SELECT count(*) AS n FROM iterations", "--json", "--runs", place)
        done = subprocess.run(
            [KFORGE, *words], env=env, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == code, done.stderr
        assert said in done.stdout + done.stderr


@pytest.mark.net
def test_a_bucket_that_cannot_be_reached_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked before work is spent; the message says what to check."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(mirror, "ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    mirror._store.cache_clear()
    try:
        with pytest.raises(LedgerError, match="s3://ledgers/x cannot be reached"):
            ledger("x", tmp_path, monkeypatch, "one").ensure_writable()
    finally:
        mirror._store.cache_clear()


def test_a_plain_folder_stays_what_it_is(tmp_path: Path) -> None:
    """Nothing is asked of anybody."""
    assert mirror.folder(str(tmp_path)) == tmp_path
    mirror.push(tmp_path, tmp_path / "a", b"")
    mirror.pull(tmp_path, tmp_path / "iterations")
    with pytest.raises(MisuseError, match="names no bucket"):
        mirror.folder("s3:///x")
