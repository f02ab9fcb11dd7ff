"""What `kforge onboard` and its deployment check: the same, in the same words."""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from targets import brief
from targets.machines import inventory
from tasks.health import Check
from tasks.newcomer import contract, examine


def test_a_complete_target_passes() -> None:
    """The processor's target has all that a new one must have."""
    checks = list(contract(inventory.device("cpu")))
    assert all(c.ok for c in checks), [c for c in checks if not c.ok]
    assert {"target", "parsers", "commands", "without tools", "cases", "card"} <= {
        c.name for c in checks
    }


def test_a_device_without_its_target_is_not_reached(tmp_path: Path) -> None:
    """One line says what is missing, and no machine is asked."""
    seen: list[Check] = []
    stranger = replace(inventory.device("cpu"), target="abacus")
    assert asyncio.run(examine(stranger, tmp_path, seen.append)) == ""
    assert [(c.name, c.state) for c in seen] == [("target", "FAIL")]


def test_a_device_that_cannot_run_is_told_apart(tmp_path: Path) -> None:
    """What it can do is still on its page."""
    seen: list[Check] = []
    absent = replace(inventory.device("cpu"), execution="none")
    page = asyncio.run(examine(absent, tmp_path, seen.append))
    assert page.startswith("# cpu")
    assert (seen[-1].name, seen[-1].state) == ("known kernel", "FAIL")


@pytest.mark.parametrize(
    ("guide", "kernel", "said"),
    [
        (None, None, "guide.md is missing: docs/new-chip.md, 2"),
        ("rules " * 200, "class ModelNew(\n", "its kernel is no Python: "),
        ("rules " * 200, "class Other: ...\n", "no class ModelNew in it"),
    ],
)
def test_example_that_is_not_there_yet_is_a_line(
    guide: str | None,
    kernel: str | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has written the target's file so far reads what comes next; nothing is judged."""
    for name in ("cpu", "wgsl"):
        shutil.copytree(brief.EXAMPLES / name, tmp_path / name)
    for name, text in {"guide.md": guide, "kernel.py": kernel}.items():
        (tmp_path / "wgsl" / name).unlink()
        if text is not None:
            (tmp_path / "wgsl" / name).write_text(text)
    monkeypatch.setattr(brief, "EXAMPLES", tmp_path)
    seen: list[Check] = []
    chip = replace(inventory.device("cpu"), target="wgsl", arch="lavapipe")
    assert asyncio.run(examine(chip, tmp_path / "runs", seen.append)) == ""
    failed = [c for c in seen if not c.ok]
    assert failed
    assert all(said in c.found for c in failed)
