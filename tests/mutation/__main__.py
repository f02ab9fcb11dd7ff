"""`python -m tests.mutation`: the judge against planted bugs and against honest variants.

Prints one line a case as it is judged, a survey, and at the end
`mutants N missed A variants M false B`. Exit code 1 unless A and B are 0.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch

from tests.mutation.corpus import CASES, Case
from tests.mutation.judging import Ruled, ruled, warm

SEED = 20260
WORKERS = 3
"""Of two cores: while one worker waits for its child or its compiler, another computes."""


def main() -> int:
    """0 when nothing false got in and nothing honest was refused."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names as in a file glob")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--survey", type=Path, metavar="FILE", help="write all findings as JSON")
    told = parser.parse_args()
    chosen = [c for c in CASES if fnmatch(c.name, told.only)]
    if not chosen:
        print(f"no case is named like {told.only!r}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="kforge-mutation-") as folder:
        Path(folder).chmod(0o755)  # children have no rights of their own
        findings = list(_told(_findings(chosen, Path(folder), told.seed), len(chosen)))
    if told.survey:
        told.survey.write_text(json.dumps([asdict(f) for f in findings], indent=1) + "\n")
    for line in survey(findings):
        print(line)
    mutants = [f for f in findings if f.kind is not None]
    variants = [f for f in findings if f.kind is None]
    missed, false = _wrong(mutants), _wrong(variants)
    print(f"mutants {len(mutants)} missed {missed} variants {len(variants)} false {false}")
    return 1 if missed or false else 0


def survey(findings: Sequence[Ruled]) -> Iterator[str]:
    """Share of the planted faults that was seen: by operator, then by kind of fault."""
    mutants = [f for f in findings if f.kind is not None]
    for title, key in (("operator", "operator"), ("kind", "kind")):
        for value in sorted({str(getattr(f, key)) for f in mutants}):
            group = [f for f in mutants if getattr(f, key) == value]
            seen = len(group) - _wrong(group)
            yield f"{title} {value}: {seen} of {len(group)} planted faults seen"


def _wrong(findings: Sequence[Ruled]) -> int:
    return sum(not f.as_it_should for f in findings)


def _findings(chosen: Sequence[Case], cache: Path, seed: int) -> Iterator[Ruled]:
    """All cases, in the order in which they end."""
    torch.set_num_threads(1)
    with warm(cache) as zygote:
        context = multiprocessing.get_context("fork")
        given = {"zygote": zygote, "seed": seed}
        with context.Pool(WORKERS, initializer=_GIVEN.update, initargs=(given,)) as pool:
            yield from pool.imap_unordered(_ruled, chosen)


_GIVEN: dict[str, Any] = {}
"""What a worker inherits: a warm process cannot be sent to it."""


def _ruled(case: Case) -> Ruled:
    return ruled(case, **_GIVEN)


def _told(findings: Iterator[Ruled], count: int) -> Iterator[Ruled]:
    """The same, one line each to stderr."""
    began = time.monotonic()
    for number, f in enumerate(findings, 1):
        mark = "ok  " if f.as_it_should else "MISSED" if f.kind else "FALSE"
        line = f"{number}/{count} {mark} {f.case} {f.verdict} ({f.draw}) {f.seconds:.1f} s"
        print(line, "" if f.as_it_should else f.reason, file=sys.stderr, flush=True)
        yield f
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
