"""The data sheets: complete, plausible, and known as devices by their names."""

import dataclasses
from pathlib import Path

import pytest

from targets import TARGETS, cards
from targets.machines import inventory

SHEETS = pytest.mark.parametrize("sheet", cards.sheets().values(), ids=list(cards.sheets()))
NAMES = {
    *("h200", "h100", "b200", "a100", "mi300x", "rx7900xtx"),
    *("b580", "a770", "max1550", "m4-max", "m2"),
}


def test_the_promised_devices_are_there() -> None:
    """Eleven devices of four vendors have a sheet."""
    assert set(cards.sheets()) >= NAMES
    assert {s.target for s in cards.sheets().values()} == {"nvidia", "amd", "intel", "apple"}


@SHEETS
def test_sheet_is_complete_and_plausible(sheet: cards.Sheet) -> None:
    """Every figure has its type, a source, and a size that a device of this age has."""
    for field in dataclasses.fields(cards.Limits):
        assert isinstance(getattr(sheet.limits, field.name), int | None), field.name
    assert sheet.sources
    assert all(isinstance(s, str) for s in sheet.sources)
    assert 50 < sheet.peak_gb_s < 10_000
    assert 1 < sheet.peak_tflop_s["float32"] < 200
    assert sheet.peak_tflop_s["float32"] <= sheet.peak_tflop_s["float16"] < 3000
    assert 8 <= sheet.memory_gib <= 300
    assert all(width in (8, 16, 32, 64) for width in sheet.sub_groups)
    assert sheet.limits.shared_bytes_per_group <= (sheet.limits.shared_bytes or 1 << 20)
    assert sheet.card.cores == sheet.units


@SHEETS
def test_name_is_a_device_without_a_file(sheet: cards.Sheet, tmp_path: Path) -> None:
    """A device that is not here is compiled for and emulated at most: it is never timed."""
    (tmp_path / "devices.toml").write_text("")
    device = inventory.device(sheet.name, tmp_path / "devices.toml")
    assert device.arch == sheet.arch
    if device.execution != "hardware":
        report = inventory.capabilities(device)
        assert report.execute == (device.execution == "emulated")
        assert not report.time
        assert report.why
        assert report.machine == ("local" if report.execute else "none")
        assert report.compile == bool(report.tool)


def test_entry_of_the_file_wins_over_the_sheet(tmp_path: Path) -> None:
    """Who has the device says where it is."""
    file = tmp_path / "devices.toml"
    file.write_text('[[device]]\nname = "h200"\ntarget = "nvidia"\narch = "sm_90"\n')
    device = inventory.device("h200", file)
    assert (device.arch, device.execution) == ("sm_90", "hardware")


def test_limits_are_found_by_architecture() -> None:
    """A device that has no sheet has the limits of its architecture; an unknown one has none."""
    assert cards.for_arch("sm_90") == cards.for_arch("sm_90a") != None  # noqa: E711
    assert cards.for_arch("sm_20") is None


def test_drivers_name_of_a_device_finds_its_sheet() -> None:
    """The driver says `NVIDIA A100-SXM4-80GB` or `NVIDIA H200`."""
    named = {
        "h200": "NVIDIA H200",
        "a100": "NVIDIA A100-SXM4-80GB",
        "h100": "NVIDIA H100 80GB HBM3",
    }
    for name, model in named.items():
        assert [s.name for s in cards.sheets().values() if s.model in model] == [name]
    assert all(t.models == "" or t.models.startswith("/") for t in TARGETS.values())
