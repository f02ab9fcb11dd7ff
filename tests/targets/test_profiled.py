"""The vendor's profiler in the loop: run on a right candidate, its counters beside the roofline."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from data.records import (
    Admission,
    BuildResult,
    Card,
    Metric,
    Profile,
    RunResult,
    RunStatus,
    Shape,
)
from targets import TARGETS, roofline
from targets.cpu import CpuTarget
from targets.nvidia import TARGET as NVIDIA
from targets.remote import walled
from targets.remote.ladder import Rung
from tests.targets.rig import HONEST, Rig

RECORDED = Path(__file__).parent / "cases" / "nvidia" / "ncu_details.json"
FAKE = """#!/bin/sh
# Runs what it is given after the options, as ncu does, and prints a recorded table. Its parts
# find each other by a socket on loopback.
{python} -I -c 'import socket as s
end = s.create_server(("127.0.0.1", 0))
s.create_connection(end.getsockname(), timeout=5).close()' || exit 2
while [ "$1" != "{python}" ]; do shift; done
"$@" || exit 1
cat <<'END'
==PROF== Connected to process 1
{table}
END
"""


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An executable of that name in the PATH, and a chip whose tensors lie on the host."""
    tool = tmp_path / "bin" / "ncu"
    tool.parent.mkdir()
    table = json.loads(RECORDED.read_text())["output"]
    tool.write_text(FAKE.format(python=sys.executable, table=table))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    return tool


class _Profiled(CpuTarget):
    """The processor's target with NVIDIA's profiler."""

    def profile_command(self, program: Sequence[str]) -> tuple[str, ...]:
        return NVIDIA.profile_command(program)

    def parse_profile(self, text: str) -> Profile:
        return NVIDIA.parse_profile(text)


def test_counters_of_the_profiler_are_evidence_for_advice(
    rig: Rig, ncu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timed right candidate was run once under the tool; what it printed stands in the result."""
    monkeypatch.setitem(TARGETS, "cpu", _Profiled())
    run = rig.measure(HONEST, pairs=2)
    assert run.status is RunStatus.RAN, run.detail
    assert run.counted is not None
    assert run.counted.value("dram_bytes"), run.counted.remarks
    assert run.counted.value("achieved_occupancy")
    assert any("launches" in r for r in run.counted.remarks)
    assert rig.measure(HONEST, pairs=0).counted is None


def test_profiler_that_fails_is_a_remark(
    rig: Rig, ncu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without counters the candidate is as right and as fast as before."""
    monkeypatch.setitem(TARGETS, "cpu", _Profiled())
    ncu.write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM'\nexit 1\n")
    run = rig.measure(HONEST, pairs=2)
    assert run.timings
    assert run.counted is not None
    assert run.counted.metrics == ()
    assert "may not read the performance counters" in run.counted.remarks[0]


def test_profiler_without_walls_of_its_own_is_not_run(
    rig: Rig, ncu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing keeps its sockets inside, there are no counters, and the remark says why."""
    monkeypatch.setitem(TARGETS, "cpu", _Profiled())
    monkeypatch.setattr(walled, "accepted", lambda _: (Rung.LANDLOCK,))
    run = rig.measure(HONEST, pairs=2)
    assert run.timings
    assert run.counted is not None
    assert "there are no namespaces" in run.counted.remarks[0]


def test_profile_joins_roofline_counters_and_compiler() -> None:
    """Each name once: what was counted goes before what the compiler estimated."""
    shape = Shape(name="full", inputs=(), outputs=(), flops=1.0, moved_bytes=1.0, floor_us=1.0)
    card = Card(peak_gb_s=1.0)
    admission = Admission(outcome=None, reason="", card=card, shapes=(shape,))
    metric = Metric(name="registers_per_thread", value=40.0, unit="count", source="ptxas")
    build = BuildResult(ok=True, route="launcher", metrics=(metric,))
    counted = replace(metric, value=32.0, source="ncu Registers Per Thread")
    run = RunResult(status=RunStatus.RAN)
    run = replace(run, counted=Profile(metrics=(counted,), remarks=("longest kernel",)))
    profile = roofline.profile(admission, shape, build, run)
    assert [m.source for m in profile.metrics if m.name == metric.name] == [counted.source]
    assert profile.remarks == ("longest kernel",)
