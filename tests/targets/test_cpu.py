import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from data.codec import encode
from data.metrics import ROOFLINE
from data.records import (
    Admission,
    BuildResult,
    Card,
    Device,
    Metric,
    RunResult,
    RunStatus,
    Shape,
    Timing,
)
from targets import diagnostics, roofline
from targets.cpu import EXAMPLES
from targets.cpu import TARGET as CPU
from targets.remote import kforge_launch

CASES = sorted((Path(__file__).parent / "cases" / "cpu").glob("*.json"))
DEVICE = Device(name="cpu", target="cpu", vendor="cpu", arch="x86_64-avx512f")


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_recorded_output_is_read_as_recorded(path: Path) -> None:
    """What each compiler printed gives the diagnostics, counts and remarks written beside it."""
    case = json.loads(path.read_text())
    expected = case["expected"]
    assert encode(CPU.parse_diagnostics(case["output"])) == expected["diagnostics"]
    if case["code"] == 0:
        report = CPU.parse_report(case["output"])
        assert {m.name: m.value for m in report.metrics} == expected["metrics"]
        assert list(report.remarks) == expected["remarks"]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_cut_off_output_is_no_fault(path: Path) -> None:
    """Output that ends anywhere, or is empty, is parsed without an exception."""
    text = json.loads(path.read_text())["output"]
    for end in range(0, len(text), 37):
        CPU.parse_diagnostics(text[:end])
        CPU.parse_report(text[:end])
        diagnostics.readable(text[:end])


def test_quoted_lines_of_foreign_files_reach_nobody() -> None:
    """A source that includes a private file learns neither its lines nor its words."""
    text = (
        "In file included from kernel.cpp:3:\n"
        "/etc/shadow:1:1: error: 'root' does not name a type\n"
        "    1 | root:$6$secret:19000:0:99999:7:::\n"
        "      | ^~~~\n"
        "kernel.cpp:9:1: error: expected '}'\n"
    )
    found = CPU.parse_diagnostics(text)
    shown = diagnostics.readable(text) + repr(found)
    assert "secret" not in shown
    assert "root" not in shown
    assert [(d.file, d.line) for d in found] == [("kernel.cpp", 3), ("kernel.cpp", 9)]


def test_forged_system_path_is_still_foreign() -> None:
    """`#line` with a path that climbs out of the system's folders quotes nothing."""
    text = "/usr/include/../../etc/shadow:1:1: error: secret\n    1 | secret\n      | ^\n"
    assert "secret" not in diagnostics.readable(text) + repr(CPU.parse_diagnostics(text))


def test_many_errors_are_bounded() -> None:
    """A thousand errors give a few, the first ones."""
    text = "".join(f"kernel.cpp:{n}:1: error: wrong {n}\n" for n in range(1, 1001))
    found = CPU.parse_diagnostics(text)
    assert len(found) == diagnostics.KEPT
    assert found[0].line == 1


def test_command_names_the_clang_or_gcc_remarks() -> None:
    """Each compiler is asked for its own report, and the launcher's flags are all there."""
    for compiler, flag in (("g++", "-fopt-info-vec"), ("clang++-19", "-Rpass=loop-vectorize")):
        command = CPU.compile_command(
            Path("k.cpp"), Path("k.so"), language="cpp", compiler=compiler, arch="any"
        )
        assert command[0] == compiler
        assert flag in command
        assert {"-O3", "-march=native", "-fopenmp"} <= set(command)
        assert "-ffast-math" not in command


def _admission(card: Card | None, shape: Shape) -> Admission:
    return Admission(outcome=None, reason="", shapes=(shape,), card=card)


def _run(**timing: Any) -> RunResult:
    base: dict[str, Any] = {
        "shape": "full",
        "baseline": "eager",
        "ratio": 1.5,
        "low": 1.4,
        "high": 1.6,
        "pair_ratios": (1.5,),
        "candidate_us": 110.0,
        "baseline_us": 160.0,
        "null_us": 10.0,
    }
    return RunResult(status=RunStatus.RAN, timings=(Timing(**base | timing),))


SHAPE = Shape(name="full", inputs=(), outputs=(), flops=2e6, moved_bytes=1e6, floor_us=50.0)
CARD = Card(peak_gb_s=20.0, peak_tflop_s={"float32": 0.2}, cores=2, cache_mib=8.0)


def test_profile_numbers_follow_from_time_shape_and_card() -> None:
    """Every metric of the roofline has the value of its formula, the judge's cost taken off."""
    count = Metric(name="loops_missed", value=1.0, unit="count", source="g++")
    build = BuildResult(ok=True, route="launcher", metrics=(count,), remarks=("3: no",))
    profile = roofline.profile(_admission(CARD, SHAPE), SHAPE, build, _run())
    expected = {
        "time_us": 110.0,
        "floor_us": 50.0,
        "time_over_floor": 2.0,
        "speedup": 1.5,
        "achieved_gb_s": 10.0,
        "peak_gb_s": 20.0,
        "bandwidth_share": 0.5,
        "achieved_gflop_s": 20.0,
        "peak_gflop_s": 200.0,
        "compute_share": 0.1,
        "arithmetic_intensity": 2.0,
        "machine_balance": 10.0,
        "null_us": 10.0,
        "null_share": 10 / 110,
        "threads": 2.0,
        "moved_mib": 1e6 / (1 << 20),
        "cache_mib": 8.0,
        "loops_missed": 1.0,
    }
    assert {m.name: m.value for m in profile.metrics} == pytest.approx(expected)
    assert profile.remarks == ("3: no",)
    assert set(ROOFLINE) == set(expected) - {"loops_missed"}


def test_unknown_numbers_are_absent_and_not_zero() -> None:
    """Without a card, operations or a time nothing is made up."""
    bare = Shape(name="full", inputs=(), outputs=(), flops=None, moved_bytes=8.0, floor_us=None)
    build = BuildResult(ok=True, route="launcher")
    untimed = RunResult(status=RunStatus.RAN)
    profile = roofline.profile(_admission(None, bare), bare, build, untimed)
    assert {m.name for m in profile.metrics} == {"moved_mib"}
    timed = roofline.profile(_admission(None, bare), bare, build, _run())
    assert timed.value("compute_share") is None
    assert timed.value("time_us") == 110.0


def test_a_copy_has_no_arithmetic_and_that_is_known() -> None:
    """Zero operations are a figure: nobody may call a transpose compute-bound."""
    copy = Shape(name="full", inputs=(), outputs=(), flops=0.0, moved_bytes=8.0, floor_us=None)
    profile = roofline.metrics(_admission(CARD, copy), copy, RunResult(status=RunStatus.RAN))
    assert {m.name: m.value for m in profile}["arithmetic_intensity"] == 0.0


def test_time_is_the_median_of_the_samples() -> None:
    """Raw samples, where given, win over the summary."""
    build = BuildResult(ok=True, route="launcher")
    run = _run(samples_us=(30.0, 20.0, 1000.0))
    profile = roofline.profile(_admission(CARD, SHAPE), SHAPE, build, run)
    assert profile.value("time_us") == 30.0


def test_no_compiler_says_what_to_install() -> None:
    """Without a compiler nothing is possible, and the reason names the remedy."""
    without = CPU.capabilities(frozenset())
    assert (without.compile, without.execute, without.time) == (False, False, False)
    assert "install g++ or clang" in without.why
    assert CPU.capabilities(frozenset({"clang++"})).compile


def test_brief_states_the_real_flags_and_is_filled_in() -> None:
    """The guide names the flags of the launcher and has no placeholder left."""
    brief = CPU.brief(DEVICE)
    assert "-O3 -march=native -fopenmp" in brief.guide
    assert "{flags}" not in brief.guide
    assert "{arch}" not in brief.guide
    ast.parse(brief.example_operator)
    ast.parse(brief.example_kernel)


CHECK = """
import sys, torch
sys.path.insert(0, sys.argv[1])
space = {}
for name in ("operator", "kernel"):
    exec(compile(open(f"{sys.argv[2]}/{name}.py").read(), name, "exec"), space)
torch.manual_seed(0)
for rows, columns in ((7, 1000), (64, 33), (1, 1)):
    reference, candidate = space["Model"](columns), space["ModelNew"](columns)
    state = {k: torch.randn_like(v) for k, v in reference.state_dict().items()}
    reference.load_state_dict(state), candidate.load_state_dict(state)
    x = torch.randn(rows, columns)
    expected = reference.double()(x.double())
    torch.testing.assert_close(candidate(x).double(), expected, rtol=1e-5, atol=1e-6)
print("same")
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_example_compiles_and_is_right(tmp_path: Path) -> None:
    """The one-shot example that generators see is a working kernel of its operator."""
    shutil.copy(kforge_launch.__file__, tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "-c", CHECK, str(tmp_path), str(EXAMPLES)],
        env={"PATH": "/usr/bin:/bin", "KFORGE_LAUNCH_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "same\n", done.stderr[-800:]
    assert len(list(tmp_path.glob("*.so"))) == 1
