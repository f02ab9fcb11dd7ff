"""A ledger on S3: the prefix is the truth, a folder here holds what was read or written of it.

Files of a ledger never change under a name (`data/files.py`), so that a copy need not be looked at
again. A file is put on S3 before it appears here, and taken off S3 before it goes here.
Keys and endpoint come from the variables that AWS's own tools read.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pyarrow import fs

from data.errors import LedgerError, MisuseError
from data.records import digest

SCHEME = "s3://"
MARK = ".s3"
"""The file in a mirror's folder that names the prefix."""
ATTEMPTS = 5
CONNECT_S, ANSWER_S = 10.0, 60.0


def folder(text: str) -> Path:
    """The folder of a ledger: the path itself, or the mirror of `s3://BUCKET/PREFIX`, made here.

    MisuseError for a URL without a bucket.
    """
    if not text.startswith(SCHEME):
        return Path(text)
    bucket, _, prefix = text.removeprefix(SCHEME).partition("/")
    if not bucket:
        raise MisuseError(f"{text!r} names no bucket; expected {SCHEME}BUCKET/PREFIX")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = base / "kforge" / "ledgers" / f"{bucket}-{digest(text.rstrip('/'))}"
    place.mkdir(parents=True, exist_ok=True)
    (place / MARK).write_text(f"{bucket}/{prefix.strip('/')}".rstrip("/"))
    return place


def remote(root: Path) -> bool:
    """Whether the ledger lies on S3."""
    return _prefix(root) is not None


def address(root: Path) -> str:
    """The ledger's place as a person gives it."""
    prefix = _prefix(root)
    return str(root) if prefix is None else f"{SCHEME}{prefix}"


def push(root: Path, path: Path, content: bytes) -> None:
    """Puts a file of the ledger on S3; nothing for a ledger that is a plain folder."""
    if (prefix := _prefix(root)) is not None:
        with _told(prefix), _store().open_output_stream(_key(root, prefix, path)) as stream:
            stream.write(content)


def drop(root: Path, path: Path) -> None:
    """Takes a file off S3; one that is gone is no fault."""
    if (prefix := _prefix(root)) is not None:
        with _told(prefix):
            key = _key(root, prefix, path)
            if _store().get_file_info(key).type is not fs.FileType.NotFound:
                _store().delete_file(key)


def pull(root: Path, place: Path) -> None:
    """Makes what lies below `place` here the same as on S3. LedgerError when it cannot be asked."""
    if (prefix := _prefix(root)) is None:
        return
    with _told(prefix):
        _require(prefix.partition("/")[0])
        below = fs.FileSelector(_key(root, prefix, place), recursive=True, allow_not_found=True)
        there = {
            root / info.path.removeprefix(f"{prefix}/"): info
            for info in _store().get_file_info(below)
            if info.type is fs.FileType.File
        }
        for path, info in there.items():
            aside = root / "set-aside" / path.relative_to(root)
            if not path.exists() and not aside.exists():
                _fetch(root, path, info.path)
    for path in [p for p in place.rglob("*") if p.is_file() and p not in there]:
        path.unlink(missing_ok=True)


def _fetch(root: Path, path: Path, key: str) -> None:
    """One file, whole or not at all; one that was merged away meanwhile is no fault."""
    temporary = root / ".tmp" / f"{digest(key)}.{os.getpid()}.fetched"
    temporary.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _store().open_input_stream(key) as stream:
            temporary.write_bytes(stream.read())
    except FileNotFoundError:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.replace(path)


def _prefix(root: Path) -> str | None:
    """`BUCKET/PREFIX` of a mirror; None for a plain folder."""
    try:
        return (root / MARK).read_text()
    except OSError:
        return None


def _key(root: Path, prefix: str, path: Path) -> str:
    return f"{prefix}/{path.relative_to(root).as_posix()}"


@cache
def _store() -> fs.S3FileSystem:
    """One connection pool a process."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    scheme, _, host = (endpoint or "").rpartition("://")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return fs.S3FileSystem(
        endpoint_override=host.rstrip("/") or None,
        scheme=scheme or "https",
        region=region or "us-east-1",
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


@cache
def _require(bucket: str) -> None:
    """OSError when there is no such bucket: a listing would pass it for an empty one."""
    if _store().get_file_info(bucket).type is fs.FileType.NotFound:
        raise FileNotFoundError(f"no bucket {bucket!r} is there")


@contextmanager
def _told(prefix: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        said = " ".join(str(error).split())[:300]
        raise LedgerError(
            f"the ledger at {SCHEME}{prefix} cannot be reached: {said}; check bucket, keys"
            " (AWS_ACCESS_KEY_ID, ...) and AWS_ENDPOINT_URL, or choose another --runs"
        ) from error
