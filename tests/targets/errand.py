"""One run of `kforge judge` as a stranger makes it, and what it left behind."""

import ctypes
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyarrow import parquet

from tests.targets.corpus import Case

KFORGE = Path(sys.executable).with_name("kforge")
KEYS = (
    *("candidate", "operator", "device", "verdict", "reason", "needs_review"),
    *("speedup", "speedup_low", "speedup_high", "baseline"),
    *("contract", "execution", "isolation", "seconds"),
)
CACHES = ("torchinductor", "torch_compile", "torchelastic")
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
QUIET_S = 2.0


@dataclass(slots=True, kw_only=True)
class Errand:
    """Folders of one stranger; several calls may share them."""

    root: Path
    token: str = field(default_factory=lambda: secrets.token_hex(12))
    names: dict[str, str] = field(default_factory=dict)
    """Neutral file names by case."""

    def __post_init__(self) -> None:
        for folder in ("home", "temporary", "work", "files"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)

    def judge(self, given: Sequence[Case], *options: str) -> list[dict[str, object]]:
        """One answer a case, by one call with `--pairs`; checks exit status and leftovers."""
        pairs = self.root / "files" / f"pairs_{len(self.names)}_{len(options)}.jsonl"
        pairs.write_text("".join(json.dumps(self._pair(case)) + "\n" for case in given))
        words = ["judge", "--pairs", str(pairs), "--runs", str(self.root / "runs"), *options]
        before = set(Path("/dev/shm").iterdir())
        older = frozenset(pid for pid, _ in descendants(os.getpid()))
        with reaping():
            done = subprocess.run(
                [KFORGE, *words, "--json"],
                cwd=self.root / "work",
                env={
                    **os.environ,
                    "HOME": str(self.root / "home"),
                    "TMPDIR": str(self.root / "temporary"),
                    "KFORGE_CASE_TOKEN": self.token,
                },
                capture_output=True,
                text=True,
                timeout=1800,
                check=False,
            )
            time.sleep(QUIET_S)
            left = [*descendants(os.getpid(), older)]
        assert not left, f"processes are left: {left}"
        assert self.token not in done.stdout + done.stderr
        assert "\x1b" not in done.stdout + done.stderr, "a candidate writes to the terminal"
        self._clean(before)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [a["candidate"] for a in answers] == [self._file(c.name) for c in given], done.stderr
        assert all(tuple(a) == KEYS for a in answers)
        assert all(str(a["reason"]).isprintable() for a in answers)
        assert done.returncode == status([str(a["verdict"]) for a in answers]), done.stderr
        return answers

    def _pair(self, case: Case) -> dict[str, str]:
        candidate, problem = Path(self._file(case.name)), Path(self._file(str(case.problem)))
        candidate.write_text(case.source)
        problem.write_text(case.problem.read_text())
        return {"candidate": str(candidate), "operator": str(problem)}

    def _file(self, name: str) -> str:
        """A path that says nothing of what it holds."""
        number = self.names.setdefault(name, f"m{len(self.names):03}")
        return str(self.root / "files" / f"{number}.py")

    def _clean(self, before: set[Path]) -> None:
        for folder in ("temporary", "work"):
            found = [p.name for p in (self.root / folder).iterdir()]
            assert not [n for n in found if not n.startswith(CACHES)], f"{folder} holds {found}"
        ours = [p for p in set(Path("/dev/shm").iterdir()) - before if p.exists()]
        assert not [p for p in ours if _holds(p, self.token)]
        for path in filter(Path.is_file, self.root.rglob("*")):
            assert not _holds(path, self.token), f"the token stands in {path}"

    @property
    def kept(self) -> int:
        """Bytes of records: the runs folder without what can be made again."""
        files = (p for p in (self.root / "runs").rglob("*") if p.is_file())
        return sum(p.stat().st_size for p in files if ".cache" not in p.parts)


def status(verdicts: Sequence[str]) -> int:
    """The exit status that belongs to the verdicts, told apart from the code under test."""
    if set(verdicts) <= {"CORRECT", "FASTER"}:
        return 0
    return 3 if set(verdicts) - {"CORRECT", "FASTER", "UNVERIFIED"} else 4


def descendants(pid: int, known: frozenset[int] = frozenset()) -> Iterator[tuple[int, str]]:
    """Processes below `pid`, with their names, but for the known ones with all below them."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    waiting = [*parents.get(pid, [])]
    while waiting:
        if (found := waiting.pop()) in known:
            continue
        yield found, _command(found) or Path(f"/proc/{found}/stat").read_text()[:40]
        waiting += parents.get(found, [])


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


class reaping:  # noqa: N801 (reads as a statement)
    """Inside, orphans of our children become ours, so that none is missed."""

    def __enter__(self) -> None:
        ctypes.CDLL(None).prctl(SUBREAPER, 1)

    def __exit__(self, *_: object) -> None:
        ctypes.CDLL(None).prctl(SUBREAPER, 0)


def _holds(path: Path, token: str) -> bool:
    """Whether the token stands in the file, inside Parquet too."""
    if path.suffix == ".parquet":
        return token in str(parquet.read_table(path).to_pylist())
    return path.is_file() and token.encode() in path.read_bytes()
