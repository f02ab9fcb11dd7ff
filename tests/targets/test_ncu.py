"""Nsight Compute's output, torch.profiler's traces, and occupancy against what ncu itself says."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from data.errors import MachineError
from targets import cards, ncu
from targets.nvidia import TARGET as NVIDIA
from targets.occupancy import by_resource, occupancy

FOLDER = Path(__file__).parent / "cases" / "nvidia"
CASES = pytest.mark.parametrize("path", sorted(FOLDER.glob("ncu_*.json")), ids=lambda p: p.stem)


def _case(path: Path) -> Any:
    return json.loads(path.read_text())


@CASES
def test_recorded_output_is_read_as_recorded(path: Path) -> None:
    """Each kernel has its name, its figures in the units of the vocabulary, and its advice."""
    case = _case(path)
    found = ncu.parse(case["output"])
    for kernel, expected in zip(found.kernels, case["expected"]["kernels"], strict=True):
        assert kernel.name == expected["name"]
        values = {m.name: m.value for m in kernel.metrics if not m.name.startswith("stall_")}
        assert values == pytest.approx(expected["metrics"])
        assert len(kernel.rules) == expected["rules"]
    assert len(found.notes) == case["expected"]["notes"]


def test_figures_are_those_of_the_page() -> None:
    """Read by eye in the recorded page: a matrix product at 14.64 % occupancy, 168 registers."""
    kernel = ncu.parse(_case(FOLDER / "ncu_details.json")["output"]).kernels[0]
    assert kernel.value("achieved_occupancy") == pytest.approx(0.1464)
    assert kernel.value("kernel_us") == pytest.approx(174.592)
    assert kernel.value("registers_per_thread") == 168.0
    assert kernel.value("dram_gb_s") == pytest.approx(608.447, rel=1e-4)
    assert kernel.value("dram_bytes") == pytest.approx(106.23e6, rel=1e-3)
    assert kernel.rules[0].startswith("SharedMemoryConflicts (estimated gain 14 %): ")


def _swapped(text: str) -> str:
    """The same table as another locale prints it: 26.138,50 for 26,138.50."""
    start = text.index('"ID"')
    rows = list(csv.reader(io.StringIO(text[start:])))
    turn = str.maketrans(",.", ".,")
    swapped = [
        [c.translate(turn) if ncu.number(c, ".") is not None else c for c in r] for r in rows
    ]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(swapped)
    return text[:start] + out.getvalue()


@CASES
def test_decimal_commas_give_the_same_figures(path: Path) -> None:
    """A locale with swapped separators changes nothing."""
    text = _case(path)["output"]
    plain, other = ncu.parse(text), ncu.parse(_swapped(text))
    for a, b in zip(plain.kernels, other.kernels, strict=True):
        assert {m.name: m.value for m in a.metrics} == {m.name: m.value for m in b.metrics}
        assert a.rules == b.rules


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no table; expected the output of ncu --csv"),
        ("==PROF== Connected to process 1\n", "no table"),
        ('"ID";"Kernel Name"\n"0";"f"\n', 'with commas; it begins \'"ID";"Kernel Name"'),
        ('\ufffd\ufffd"\0I\0D\0"\0,\0"\0K\0', "looks like UTF-16: save it as UTF-8"),
        ("==ERROR== The application returned an error code (1).\n", "returned an error code"),
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "counters.*CAP_SYS"),
        ('"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","f', "complete row"),
        ('"ID","Kernel Name","a"\n"","","byte"\n', "no kernel"),
    ],
)
def test_output_without_a_kernel_says_why(text: str, words: str) -> None:
    """Empty, refused and broken runs end in one line that says what to do."""
    with pytest.raises(MachineError, match=words):
        ncu.parse(text)


@CASES
def test_cut_off_table_is_noted_and_invents_nothing(path: Path) -> None:
    """What stands before the cut is kept; no figure is read from half a number."""
    text = _case(path)["output"]
    whole = {k.name: {m.name: m.value for m in k.metrics} for k in ncu.parse(text).kernels}
    for end in range(len(text) // 2, len(text) - 20, len(text) // 30):
        try:
            found = ncu.parse(text[:end])
        except MachineError:
            continue
        assert any("cut off" in n for n in found.notes) or text[end - 1] == "\n"
        for kernel in found.kernels[:-1]:
            assert {m.name for m in kernel.metrics} == set(whole[kernel.name])


@CASES
def test_profile_fits_what_an_analyst_reads(path: Path) -> None:
    """At most 25 metrics; the longest wait is among them and the limit of occupancy is said."""
    text = _case(path)["output"]
    profile = NVIDIA.parse_profile(text)
    assert len(profile.metrics) <= 25
    assert profile.remarks[1].startswith("occupancy is limited by ")
    waits = [m for k in ncu.parse(text).kernels for m in k.metrics if m.name == "stall_wait"]
    assert bool(waits) == any(m.name.startswith("stall_") for m in profile.metrics)


def test_warnings_stay_with_the_result() -> None:
    """Unlocked clocks are said to the analyst."""
    profile = NVIDIA.parse_profile(_case(FOLDER / "ncu_details.json")["output"])
    assert any("unmodified GPU clocks" in r for r in profile.remarks)
    assert profile.remarks[0].startswith("naive_transpose: ")
    assert profile.value("kernel_us") == pytest.approx(514.6, rel=0.01)


@pytest.mark.parametrize("page", ["ncu_raw", "ncu_basic_raw_h200"])
def test_occupancy_agrees_with_ncu(page: str) -> None:
    """The limits of the card give the same groups a multiprocessor as ncu counts."""
    sheet = cards.for_arch("sm_90a")
    assert sheet is not None
    for kernel in ncu.parse(_case(FOLDER / f"{page}.json")["output"]).kernels:
        value = {m.name: m.value for m in kernel.metrics}
        fits = {
            "registers": int(value["registers_per_thread"]),
            "shared_bytes": int(value["shared_bytes"] + value["dynamic_shared_bytes"]),
            "threads": int(value["group_threads"]),
        }
        allowed = by_resource(sheet.limits, **fits)
        assert allowed["registers"] == value["limit_registers"]
        assert allowed["threads"] == value["limit_threads"]
        assert allowed["groups"] == value["limit_groups"]
        whole = occupancy(sheet.limits, **fits).share
        assert whole == pytest.approx(value["theoretical_occupancy"], abs=1e-3)


def test_trace_of_torch_profiler_is_the_fall_back() -> None:
    """Without counters the time, registers and occupancy of the longest kernel remain."""
    args = {"registers per thread": 32, "shared memory": 1024, "est. achieved occupancy %": 50}
    events = [
        {"cat": "kernel", "name": "short", "dur": 5.0, "args": {}},
        {"cat": "cpu_op", "name": "aten::add", "dur": 900.0},
        {"cat": "kernel", "name": "long", "dur": 80.0, "args": args},
    ]
    profile = NVIDIA.parse_profile(json.dumps({"traceEvents": events}))
    assert profile.value("kernel_us") == 80.0
    assert profile.value("registers_per_thread") == 32.0
    assert profile.value("theoretical_occupancy") == 0.5
    assert profile.remarks == ("long: 80.0 us", "short: 5.0 us")


def test_command_leaves_the_clocks_alone() -> None:
    """The clocks belong to whoever runs the machine; the table is asked for as CSV."""
    command = NVIDIA.profile_command(("python", "case.py"))
    assert command[-2:] == ("python", "case.py")
    assert "--csv" in command
    assert command[command.index("--clock-control") + 1] == "none"
