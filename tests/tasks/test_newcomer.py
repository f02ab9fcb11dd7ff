"""What `kforge onboard` and its deployment check: the same, in the same words."""

import asyncio
from dataclasses import replace
from pathlib import Path

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
