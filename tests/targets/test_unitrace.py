"""Real output of unitrace becomes words of the vocabulary."""

import json
import re
from pathlib import Path

import pytest

from data.errors import MachineError
from targets import unitrace

CASES = Path(__file__).parent / "cases" / "intel"


def _text(name: str) -> str:
    return str(json.loads((CASES / f"{name}.json").read_text())["output"])


def test_profile_holds_time_launch_properties_and_counters() -> None:
    """Of the longest kernel, copies left out, with the counters of its own launch."""
    found = unitrace.profile(_text("unitrace_bytes"))
    values = {m.name: m.value for m in found.metrics}
    assert values == pytest.approx(
        {
            "groups": 56,
            "group_threads": 512,
            "subgroup_width": 16,
            "kernel_us": 4731.36,
            "shared_bytes": 8,
            "stack_bytes": 0,
            "spill_thread_bytes": 0,
            "achieved_occupancy": 0.468018,
            "unit_share": 0.90354,
            "dram_bytes": 848934528 + 125991296,
            "dram_gb_s": (848934528 + 125991296) / 4733040,
        }
    )
    assert found.remarks[0].startswith("hgemm_nocopy_nn_64x40_4x8[SIMD16")
    assert "zeCommandListAppendMemoryCopy(M2D)" in found.remarks[1]


def test_other_set_of_counters_is_no_fault() -> None:
    """A run that counted operations has no bytes; what it has is read."""
    names = {m.name for m in unitrace.profile(_text("unitrace_flops")).metrics}
    assert {"kernel_us", "spill_thread_bytes"} <= names
    assert "dram_bytes" not in names


def test_name_with_commas_is_one_name() -> None:
    """Templates put commas into a kernel's name."""
    text = _text("unitrace_bytes").replace("hgemm_nocopy_nn_64x40_4x8[", "gemm<float, 4>[")
    found = unitrace.profile(text)
    assert found.remarks[0].startswith("gemm<float, 4>[SIMD16")
    assert "dram_bytes" in {m.name for m in found.metrics}


def test_output_without_a_kernel_is_one_clear_line() -> None:
    """A trace of copies alone, one cut off or with decimal commas says what was expected."""
    text = _text("unitrace_bytes")
    commas = re.sub(r"(\d)\.(\d)", r"\1,\2", text)
    for part in (text[: text.index("hgemm")], text.replace("[SIMD", "[X"), commas):
        with pytest.raises(MachineError, match="names no kernel; expected its Device Timing"):
            unitrace.profile(part)
