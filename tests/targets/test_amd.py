"""AMD without a device: real code objects for four chips, resources and profiles read."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from data.errors import MachineError
from data.operator import find
from data.records import Contract, Device, MeasureJob
from data.verdict import Verdict, judge
from targets import rocprof
from targets.amd import CLANG
from targets.amd import TARGET as AMD
from targets.amd_clang import isa_version, where
from targets.brief import EXAMPLES
from targets.remote.build import build
from targets.remote.measure import measure
from tests.targets.rig import Rig

CASES = Path(__file__).parent / "cases" / "amd"
CHIPS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")


def recorded(name: str) -> str:
    text: str = json.loads((CASES / f"{name}.json").read_text())["output"]
    return text


@pytest.mark.parametrize("chip", CHIPS)
def test_recorded_report_has_registers_and_occupancy(chip: str) -> None:
    """Each chip's report gives the words that the analyst reads."""
    report = AMD.parse_report(recorded(f"clang_{chip}"))
    found = {m.name: m.value for m in report.metrics}
    assert 4 < found["registers_per_thread"] < 128
    assert found["shared_bytes"] == 128
    assert found["spilled_registers"] == found["stack_bytes"] == 0
    assert found["sub_groups_per_scheduler"] == (8 if chip.startswith("gfx9") else 16)
    assert report.remarks[0].startswith("squared_relu_unit: ")


def test_chips_that_the_libraries_lack_have_a_number() -> None:
    """The constant is the one that LLVM knows the chip by."""
    assert [isa_version(chip) for chip in CHIPS] == [9010, 9402, 11000, 12001]


def test_recorded_traces_are_read() -> None:
    """Times, sizes and counters of real outputs, by column name."""
    trace = rocprof.launches(recorded("rocprofv3_kernel_trace"))
    assert trace[0].kernel.startswith("void addition_kernel<float>")
    assert trace[0].value("kernel_us") == pytest.approx(48.744)
    assert (trace[0].value("group_threads"), trace[0].value("groups")) == (64, 16384)
    counted = rocprof.launches(recorded("rocprofv3_counter_collection"))
    assert counted[0].counters == {"SQ_WAVES": 16384}
    assert counted[0].value("registers_per_thread") == 8
    assert AMD.parse_profile(recorded("rocprofv3_kernel_trace")).value("kernel_us") is not None


@pytest.mark.parametrize("name", ["rocprofv3_kernel_trace", "rocprofv3_counter_collection"])
def test_half_a_number_is_no_figure(name: str) -> None:
    """A table that ends anywhere gives the launches before the cut as they are, and no other."""
    text = recorded(name)
    whole = rocprof.launches(text)
    for end in range(len(text.partition("\n")[0]), len(text)):
        with suppress(MachineError):
            assert rocprof.launches(text[:end]) == whole[: text[:end].count("\n") - 1]


def test_table_of_something_else_is_refused() -> None:
    """Statistics of the host's calls hold no launch."""
    with pytest.raises(MachineError, match="Kernel_Name"):
        rocprof.launches(recorded("rocprofv3_hip_api_stats"))


@pytest.mark.skipif(where() is None, reason="needs clang-19 and rocm-device-libs")
def test_example_is_compiled_and_right_in_the_emulator(rig: Rig) -> None:
    """The example of the prompt: clang's figures for the chip, right on waves of 64 lanes."""
    device = Device(name="mi300x", target="amd", vendor="amd", arch="gfx942", execution="emulated")
    source = (EXAMPLES / "hip" / "kernel.py").read_text()
    (operator,) = find([str(EXAMPLES / "cpu" / "operator.py")])
    built = build(operator, source, device, zygote=rig.zygote, cache=rig.folder)
    assert built.ok, built.detail
    assert CLANG in built.command
    assert any(m.name == "registers_per_thread" for m in built.metrics)
    job = MeasureJob(
        operator=operator,
        device=device,
        contract=Contract(),
        source=source,
        pairs=0,
        deadline_s=300.0,
    )
    run = measure(job, zygote=rig.zygote, cache=rig.folder)
    assert judge(Contract(), built, run).verdict is Verdict.CORRECT, run.detail
