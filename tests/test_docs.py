"""What the documents say of the command line is what it takes."""

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from flows.cli import run

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KFORGE = Path(sys.executable).with_name("kforge")
COMMANDS = (
    "port",
    "replay",
    "judge",
    "admit",
    "query",
    "show",
    "report",
    "devices",
    "doctor",
    "onboard",
    "reap",
    "ledger",
    "server",
    "spool",
    "bootstrap",
    "requalify",
    "export",
    "operators",
)
GROUPS = ("ledger", "operators", "server", "spool")
LINE = re.compile(r"^(?:\$ )?(kforge [^#\n]*)", re.MULTILINE)


def lines() -> list[tuple[str, str]]:
    """Each kforge command in a fenced block, with its page."""
    found = []
    for page in PAGES:
        blocks = re.findall(r"^```[^\n]*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        for block in blocks:
            for line in LINE.findall(block):
                found += [(page.name, part) for part in re.split(r"\s{2,}", line.strip())]
    return found


@cache
def usage(command: str) -> str:
    done = subprocess.run(
        [KFORGE, *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={
            "COLUMNS": "200",
            "PATH": "/usr/bin",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PYTHONPATH": str(ROOT),
        },
    )
    return done.stdout


@pytest.mark.parametrize(("page", "line"), lines())
def test_a_documented_command_exists_with_its_options(page: str, line: str) -> None:
    """A reader can paste it: the command is known and so is every option."""
    words = shlex.split(line)
    assert words[1] in COMMANDS, f"{page}: {line}"
    verb = " ".join(words[1 : 3 if words[1] in GROUPS else 2])
    for option in (w for w in words if w.startswith("--")):
        assert option in usage(verb), f"{page}: {option} in {line}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    """No hidden verb."""
    assert any(f"kforge {command}" in page.read_text() for page in PAGES)


def test_every_link_leads_somewhere() -> None:
    """Relative links of the pages exist."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def consoles(page: str) -> list[tuple[str, str]]:
    """Each command of a page's consoles with the output that follows it."""
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [(command, output) for command, output in blocks]


@pytest.mark.parametrize(("command", "output"), consoles("questions.md"))
def test_the_ten_answers_are_true(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the page shows is what the ledger beside it answers."""
    monkeypatch.chdir(ROOT)
    assert run(shlex.split(command)[1:]) == 0
    said = capsys.readouterr().out
    assert [line.rstrip() for line in said.splitlines()] == output.splitlines()


def test_there_are_ten_questions_and_their_ledger_is_sound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No file of it is broken, no text is lost."""
    assert len(consoles("questions.md")) == 10
    assert run(["ledger", "check", "--runs", str(ROOT / "docs" / "examples" / "ledger")]) == 0
    assert capsys.readouterr().err == ""
