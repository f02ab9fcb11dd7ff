"""What a candidate's first child has built goes to its later ones, and nothing else."""

import os
from pathlib import Path

from data.records import RunStatus
from targets.remote import inherited
from tests.targets.rig import Rig
from tests.targets.test_measure import REAL, add

CACHE = inherited.CACHES[0]


def test_plain_files_are_copied_with_their_times(tmp_path: Path) -> None:
    """Build tools compare times."""
    home, kept = tmp_path / "home", tmp_path / "kept"
    (home / CACHE / "ab").mkdir(parents=True)
    (home / CACHE / "ab" / "kernel.cubin").write_bytes(b"x" * 100)
    os.utime(home / CACHE / "ab" / "kernel.cubin", (1000, 1000))
    inherited.collect(str(home), kept)
    copy = kept / CACHE / "ab" / "kernel.cubin"
    assert copy.read_bytes() == b"x" * 100
    assert copy.stat().st_mtime == 1000


def test_links_and_pipes_lead_nowhere(tmp_path: Path) -> None:
    """A link in the child's folder is resolved on the judge's side: it must not be followed."""
    home, kept, secret = tmp_path / "home", tmp_path / "kept", tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("canary")
    (home / CACHE).mkdir(parents=True)
    (home / CACHE / "link").symlink_to(secret / "key")
    (home / CACHE / "folder").symlink_to(secret)
    os.mkfifo(home / CACHE / "pipe")
    inherited.collect(str(home), kept)
    assert not [p for p in kept.rglob("*") if p.is_file()]
    (home / CACHE.split("/")[0]).rename(tmp_path / "moved")
    (home / CACHE.split("/")[0]).symlink_to(secret)
    (secret / "cache").mkdir()
    (secret / "cache" / "key").write_text("canary")
    inherited.collect(str(home), kept)
    assert not [p for p in kept.rglob("*") if p.is_file()]


def test_a_cache_without_end_is_cut(tmp_path: Path) -> None:
    """The judge's disk is not the candidate's."""
    home, kept = tmp_path / "home", tmp_path / "kept"
    (home / CACHE).mkdir(parents=True)
    for name in range(5):
        with (home / CACHE / f"{name}").open("wb") as file:
            file.truncate(inherited.BYTES // 2 - 1)
    inherited.collect(str(home), kept)
    assert len(list((kept / CACHE).iterdir())) == 2


def test_a_later_child_finds_what_the_first_has_built(rig: Rig) -> None:
    """Each child says in its answer whether it had to build; only the first may."""
    built = (
        "import pathlib\nP = pathlib.Path('/tmp/.triton/cache/a')\n"
        "FOUND = P.exists()\nP.mkdir(parents=True, exist_ok=True); (P / 'k').write_text('1')"
    )
    late = add(f"{REAL}\nif FOUND: o += 1\nreturn o", built)
    result = rig.measure(late)
    assert result.status is RunStatus.RAN, result.detail
    assert [r for r in result.review if "watched call was wrong" in r]
    assert not list((rig.folder / inherited.FOLDER).iterdir())
