"""One HTML file that opens offline: template, style, script and data put together.

The page asks nobody for anything. Its policy allows the one script and the one style in it, by
hash, and no request at all; what models and candidates wrote is data, never markup.
"""

import base64
import hashlib
import html
import os
from dataclasses import dataclass
from pathlib import Path
from string import Template

from data.errors import LedgerError
from data.report.content import Content, content
from data.report.packing import script, visible
from data.report.scope import scope
from data.upkeep import require

_PARTS = Path(__file__).with_name("parts")
SCRIPTS = (
    "dom",
    "packed",
    "tables",
    "charts",
    "overview",
    "speed",
    "transfer",
    "roofline",
    "calibration",
    "code",
    "story",
    "main",
)
"""In the order in which they are put together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report that was written."""

    path: Path
    size_bytes: int
    pairs: int
    left_out: tuple[str, ...]


def write(root: Path, out: Path, run: str | None = None) -> Report:
    """Writes the report on the ledger in `root`, or on one run of it.

    MisuseError without a ledger or such a run, LedgerError when `out` cannot be written.
    """
    require(root)
    asked = scope(root, run)
    with asked.connection:
        found = content(asked)
    text = page(found)
    try:
        _put(out, text)
    except OSError as error:
        said = error.strerror or str(error)
        raise LedgerError(f"cannot write {out}: {said}; choose another file with -o") from error
    return Report(
        path=out,
        size_bytes=len(text),
        pairs=found.data["about"]["pairs"],
        left_out=tuple(found.data["left_out"]),
    )


def page(found: Content) -> str:
    """The HTML, in ASCII."""
    style = _part("style.css")
    program = "\n".join(_part(f"{name}.js") for name in SCRIPTS)
    program = f'"use strict";\n(() => {{\n{program}\n}})();'
    subject = found.data["about"]["run_id"] or found.data["about"]["ledger"]
    return Template(_part("page.html")).substitute(
        policy=_policy(program, style),
        title=html.escape(visible(f"KForge report: {subject}")),
        style=style,
        program=program,
        data=script(found.data),
        chunks="\n".join(found.chunks),
    )


def _policy(program: str, style: str) -> str:
    """The Content-Security-Policy: nothing but this script and this style."""
    return (
        f"default-src 'none'; img-src data:; script-src {_hash(program)}; style-src {_hash(style)};"
        " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


def _put(out: Path, text: str) -> None:
    """The whole file or none of it."""
    half = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        half.write_text(text, encoding="utf-8")
        half.replace(out)
    finally:
        half.unlink(missing_ok=True)
