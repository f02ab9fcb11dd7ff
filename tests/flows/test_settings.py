"""Deployments and settings load as they are written: Prefect passes over what it does not know."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # PyYAML ships no types

ROOT = Path(__file__).parents[2]


def in_prefect(code: str, home: Path) -> str:
    """What `code` prints in a process of its own: importing Prefect here would colour the tests."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**plain(), "PREFECT_HOME": str(home)},
    )
    return done.stdout


def plain() -> dict[str, str]:
    """The environment without settings of Prefect: it is asked what the files say."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}


def deployments() -> list[dict[str, Any]]:
    return list(yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"])


def test_entrypoints_load_and_take_their_parameters(tmp_path: Path) -> None:
    """A file whose imports fail would load as a placeholder, and fail each night."""
    code = (
        "from prefect.flows import load_flow_from_entrypoint as load;"
        "names = {e: sorted(load(e, use_placeholder_flow=False).parameters.properties)"
        " for e in ENTRYPOINTS}; print(names)"
    )
    entrypoints = sorted({d["entrypoint"] for d in deployments()} | {"flows/pair.py:pair"})
    shown = in_prefect(code.replace("ENTRYPOINTS", repr(entrypoints)), tmp_path)
    parameters = eval(shown)  # our own print
    assert parameters["flows/pair.py:pair"] == ["device", "operator", "run_id", "runs"]
    for deployment in deployments():
        assert set(deployment["parameters"]) <= set(parameters[deployment["entrypoint"]])


def test_the_nightly_run_is_off_and_in_utc() -> None:
    """A local time would run an hour late, or twice, when the clocks change."""
    by_name = {d["name"]: d for d in deployments()}
    for name in ("port-nightly", "requalify-weekly"):
        (schedule,) = by_name[name]["schedules"]
        assert schedule["timezone"] == "UTC"
        assert schedule["active"] is False
        assert by_name[name]["concurrency_limit"] == 1


def test_every_setting_is_known_to_prefect(tmp_path: Path) -> None:
    """A misspelt key is ignored without a word, and `config validate` calls it valid."""
    shown = subprocess.run(
        [Path(sys.executable).with_name("prefect"), "config", "view"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**plain(), "PREFECT_HOME": str(tmp_path), "COLUMNS": "300"},
    ).stdout
    known = {line.split("=")[0] for line in shown.splitlines() if "(from prefect.toml)" in line}
    assert known == set(names(tomllib.loads((ROOT / "prefect.toml").read_text())))


def names(table: dict[str, Any], prefix: str = "PREFECT") -> list[str]:
    """The environment variable of each key."""
    found = []
    for key, value in table.items():
        name = f"{prefix}_{key.upper()}"
        found += names(value, name) if isinstance(value, dict) else [name]
    return found
