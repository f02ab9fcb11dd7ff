import json
import subprocess
import sys
from pathlib import Path

import pytest

from data.codec import loads
from data.records import Card
from targets.remote import peaks

ROOT = Path(__file__).parents[2]
PROBE = """
import sys, pathlib
from data.codec import dumps
from targets.remote import peaks
print(dumps(peaks.probe(pathlib.Path(sys.argv[1])).card))
"""


def probed(cache: Path) -> Card:
    """What a fresh process finds: a probe forks, and a fork after OpenMP work hangs."""
    command = [sys.executable, "-c", PROBE, str(cache)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return loads(Card, done.stdout)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with one real measurement in it."""
    cache = tmp_path_factory.mktemp("peaks")
    probed(cache)
    return cache


def _change(cache: Path, *, steady: bool, gb_s: float, tflop_s: float) -> None:
    (kept,) = (cache / "peaks").glob("*.json")
    known = json.loads(kept.read_text())
    known["steady"] = steady
    known["card"]["peak_gb_s"] = gb_s
    known["card"]["peak_tflop_s"]["float32"] = tflop_s
    kept.write_text(json.dumps(known))


def test_peaks_are_plausible(measured: Path) -> None:
    """A probe gives positive peaks below what any host has."""
    (kept,) = (measured / "peaks").glob("*.json")
    card = loads(peaks.Measurement, kept.read_text()).card
    assert 0.5 < card.peak_gb_s < 5000
    assert 0.001 < card.peak_tflop_s["float32"] < 1000
    assert card.measured
    assert card.cores == peaks.threads()


def test_steady_peaks_are_read_and_not_measured_again(measured: Path) -> None:
    """Floors stay where they are once a quiet moment is on record."""
    _change(measured, steady=True, gb_s=1234.5, tflop_s=0.5)
    assert probed(measured).peak_gb_s == 1234.5


def test_disturbed_peaks_only_rise(measured: Path) -> None:
    """After an unsteady probe the next one measures again, and the better value counts."""
    _change(measured, steady=False, gb_s=0.001, tflop_s=1234.5)
    again = probed(measured)
    assert again.peak_gb_s > 0.5
    assert again.peak_tflop_s["float32"] == 1234.5


def test_environment_names_versions_and_no_paths() -> None:
    """What numbers depend on is named; nothing of the user's is."""
    found = peaks.environment()
    assert {"torch", "compiler", "cpu", "simd", "threads", "system"} <= set(found)
    assert str(Path.home()) not in repr(found)
